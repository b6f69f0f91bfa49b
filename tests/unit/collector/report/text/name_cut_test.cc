#include "collector/report/text/name_cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace ranktap::collector {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CutNames, LeaveAloneWhatFitsAndCutTheMiddleOfWhatDoesNot) {
  EXPECT_THAT(CutNames({"gemm", "a_name_that_is_too_long_for_its_place"}, 15),
              ElementsAre("gemm", "a_name..._place"));
}

// PyTorch's elementwise kernels differ only amid their template arguments.
TEST(CutNames, ShowWhereNamesDifferThatWouldLookTheSame) {
  const std::string head = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel<";
  const std::string tail = ", std::array<char*, 2ul> >(at::TensorIteratorBase&)::{lambda(int)#1}>";
  const std::vector<std::string> cut =
      CutNames({head + "at::native::direct_copy_kernel_cuda" + tail,
                head + "at::native::BinaryFunctor<float, float, MulFunctor<float>>" + tail,
                head + "at::native::BinaryFunctor<float, float, AddFunctor<float>>" + tail},
               40);
  EXPECT_THAT(cut[0], HasSubstr("direct_copy"));
  EXPECT_THAT(cut[1], HasSubstr("MulFunctor"));
  EXPECT_THAT(cut[2], HasSubstr("AddFunctor"));
  for (const std::string& name : cut) {
    EXPECT_LE(TextWidth(name), 40u) << name;
    EXPECT_TRUE(name.starts_with("elementwise")) << name;
  }
}

// At 15 columns there is no room for a beginning, too.
TEST(CutNames, ShowInAFewColumnsWhatDiffersAlone) {
  const std::string head = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel<";
  const std::string tail = "<float>>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)";
  EXPECT_THAT(
      CutNames({head + "at::native::MulFunctor" + tail, head + "at::native::AddFunctor" + tail},
               15),
      ElementsAre("...MulFunctor<f", "...AddFunctor<f"));
}

TEST(CutNames, SayWhatAnElementwiseKernelComputes) {
  const std::string name =
      "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
      "at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
      "at::native::binary_internal::MulFunctor<float> > >(at::TensorIteratorBase&, int const&)"
      "::{lambda(int)#1}>(int, int)";
  EXPECT_THAT(CutNames({name}, 44), ElementsAre("elementwise_...BFloat16, MulFunctor<float>>>"));
  const std::string vectorized =
      "void at::native::vectorized_elementwise_kernel<4, at::native::silu_kernel(at::"
      "TensorIteratorBase&)::{lambda()#1}::operator()() const::{lambda(float)#2}, "
      "std::array<char*, 2ul> >(int, float, std::array<char*, 2ul>)";
  EXPECT_THAT(CutNames({vectorized}, 46),
              ElementsAre("vectorized_elementwise_kernel<4, silu_kernel>"));
}

TEST(CutNames, KeepTheNamespaceThatAloneTellsTwoApart) {
  const std::string tail = "copy_of_many_tensors_at_once<float, 4>";
  EXPECT_THAT(CutNames({"one::" + tail, "two::" + tail}, 30),
              ElementsAre(testing::StartsWith("one::"), testing::StartsWith("two::")));
}

TEST(CutNames, AreNeverAlikeWhereTheNamesAreNot) {
  std::vector<std::string> names;
  for (const char* const of : {"a", "b", "c"}) {
    names.push_back("split_embedding_codegen_forward_unweighted_" + std::string(60, 'x') + of);
  }
  names.push_back(names[0]);
  for (size_t width = 6; width < 60; ++width) {
    const std::vector<std::string> cut = CutNames(names, width);
    EXPECT_EQ(std::set<std::string>(cut.begin(), cut.end()).size(), 3u) << width << cut[0];
    EXPECT_EQ(cut[0], cut[3]);
  }
}

TEST(CommonPath, IsThatOfAllButItsOwnParts) {
  const std::string ddp = "DistributedDataParallel.module";
  EXPECT_EQ(CommonPath({"DistributedDataParallel", ddp, ddp + ".h.0", ddp + ".h.1", ddp + ".ln"}),
            ddp + ".");
  EXPECT_EQ(CommonPath({ddp + ".h.0.mlp", ddp + ".h.0.attn", ddp + ".h.01"}), ddp + ".h.");
  EXPECT_EQ(CommonPath({ddp + ".a", ddp + ".b", "Other.c"}), "");
  EXPECT_EQ(CommonPath({"a.b", "a.c", "a.d"}), "") << "saves nothing";
  EXPECT_EQ(CommonPath({ddp + ".a", ddp + ".b", "void f<int>()"}), "");
}

TEST(CutNames, NeverGrowAndNeverSplitACharacter) {
  std::vector<std::string> names;
  for (int i = 0; i < 40; ++i) {
    std::string name;
    for (int j = 0; j < 60; ++j) name += j == 30 + i % 10 ? "\xc3\xa9" : "\xc3\xbc";
    names.push_back(name + std::to_string(i / 10));
  }
  for (size_t width = 1; width < 70; ++width) {
    for (const std::string& name : CutNames(names, width)) {
      EXPECT_LE(TextWidth(name), std::max<size_t>(width, 3)) << width;
      EXPECT_NE(static_cast<unsigned char>(name[0]) & 0xc0, 0x80) << width;
    }
  }
}

}  // namespace
}  // namespace ranktap::collector

#include "collector/facts/operators/op_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace ranktap::collector {
namespace {

// Read, written.
using Moved = std::pair<int64_t, int64_t>;

Moved BytesOf(const OpSignature& op) {
  const ByteCount count = CountBytes(op);
  EXPECT_EQ(count.known, BytesKnown::kExactly) << op.name;
  return {count.read, count.written};
}
Moved BytesOf(std::string_view name, std::string_view shapes, std::string_view types,
              std::string_view values = "") {
  return BytesOf({.name = name, .shapes = shapes, .types = types, .values = values});
}

TEST(OpBytesTest, ViewsAndAllocationsMoveNothing) {
  for (const std::string_view name :
       {"aten::view", "aten::t", "aten::transpose", "aten::expand", "aten::as_strided",
        "aten::slice", "aten::select", "aten::detach_", "aten::unsqueeze_", "aten::empty",
        "aten::empty_like", "aten::resize_", "aten::item"}) {
    EXPECT_EQ(BytesOf(name, "[[64, 64], []]", R"(["float", "ScalarList"])"), Moved(0, 0)) << name;
  }
}

TEST(OpBytesTest, ElementwiseReadsEachInputAndWritesTheirBroadcast) {
  EXPECT_EQ(BytesOf("aten::relu", "[[2, 3]]", R"(["float"])"), Moved(24, 24));
  EXPECT_EQ(BytesOf("aten::add", "[[2, 3], [3], []]", R"(["c10::Half", "c10::Half", "Scalar"])"),
            Moved(12 + 6, 12));
  EXPECT_EQ(BytesOf("aten::mul", "[[2, 1], [1, 3]]", R"(["c10::BFloat16", "float"])"),
            Moved(4 + 12, 24));
  EXPECT_EQ(BytesOf("aten::mul", "[[2, 3], []]", R"(["float", "double"])"), Moved(24, 24));
  EXPECT_EQ(
      BytesOf("aten::addcmul", "[[4], [4], [4], []]", R"(["float", "float", "float", "Scalar"])"),
      Moved(48, 16));
  EXPECT_EQ(
      BytesOf("aten::threshold_backward", "[[4], [4], []]", R"(["float", "float", "Scalar"])"),
      Moved(32, 16));
}

TEST(OpBytesTest, InPlaceReadsAndWritesItsFirst) {
  EXPECT_EQ(BytesOf("aten::add_", "[[2, 3], [3], []]", R"(["float", "float", "Scalar"])"),
            Moved(24 + 12, 24));
  EXPECT_EQ(BytesOf("aten::relu_", "[[2, 3]]", R"(["float"])"), Moved(24, 24));
  EXPECT_EQ(BytesOf("aten::zero_", "[[2, 3]]", R"(["float"])"), Moved(0, 24));
  EXPECT_EQ(BytesOf("aten::fill_", "[[2, 3], []]", R"(["float", "Scalar"])"), Moved(0, 24));
}

TEST(OpBytesTest, ACopyReadsItsSourceInItsTypeAndWritesItself) {
  EXPECT_EQ(BytesOf("aten::copy_", "[[2, 3], [2, 3], []]", R"(["c10::Half", "float", "Scalar"])"),
            Moved(24, 12));
}

TEST(OpBytesTest, AnExpandedInputIsReadOnce) {
  EXPECT_EQ(BytesOf({.name = "aten::mul",
                     .shapes = "[[8, 3], [8, 3]]",
                     .strides = "[[3, 1], [0, 1]]",
                     .types = R"(["float", "float"])"}),
            Moved(96 + 12, 96));
}

TEST(OpBytesTest, ComparisonsWriteBytes) {
  EXPECT_EQ(BytesOf("aten::eq", "[[2, 3], []]", R"(["long int", "Scalar"])"), Moved(48, 6));
  EXPECT_EQ(BytesOf("aten::where", "[[2, 3], [2, 3], []]", R"(["bool", "float", "float"])"),
            Moved(6 + 24, 24));
}

TEST(OpBytesTest, ReductionsWriteWhatIsLeft) {
  EXPECT_EQ(BytesOf("aten::sum", "[[8, 4], [], []]", R"(["float", "ScalarList", "Scalar"])",
                    R"(["", "[0]", "False"])"),
            Moved(128, 16));
  EXPECT_EQ(BytesOf("aten::mean", "[[8, 4], []]", R"(["float", ""])"), Moved(128, 0));
  EXPECT_EQ(BytesOf("aten::argmax", "[[8, 4], [], []]", R"(["float", "Scalar", "Scalar"])",
                    R"(["", "-1", "False"])"),
            Moved(128, 64));
  EXPECT_EQ(BytesOf("aten::max", "[[8, 4], [], []]", R"(["float", "Scalar", "Scalar"])",
                    R"(["", "1", "False"])"),
            Moved(128, 8 * (4 + 8)));
  EXPECT_EQ(BytesOf("aten::linalg_vector_norm", "[[8, 4], [], [], [], []]",
                    R"(["float", "Scalar", "ScalarList", "Scalar", ""])",
                    R"(["", "2", "[0]", "False", ""])"),
            Moved(128, 16));
}

TEST(OpBytesTest, AReductionWhoseDimsAreNotRecordedCountsAtLeastWhatItReads) {
  const ByteCount count = CountBytes({.name = "aten::sum",
                                      .shapes = "[[8, 4], [], []]",
                                      .types = R"(["float", "ScalarList", "Scalar"])"});
  EXPECT_EQ(count.known, BytesKnown::kAtLeast);
  EXPECT_EQ(count.read, 128);
  const ByteCount with_outputs = CountBytes({.name = "aten::sum",
                                             .shapes = "[[8, 4], [], []]",
                                             .types = R"(["float", "ScalarList", "Scalar"])",
                                             .output_shapes = "[[4]]",
                                             .output_types = R"(["float"])"});
  EXPECT_EQ(with_outputs.known, BytesKnown::kExactly);
  EXPECT_EQ(with_outputs.written, 16);
}

TEST(OpBytesTest, MatrixProductsReadBothAndWriteTheProduct) {
  EXPECT_EQ(BytesOf("aten::mm", "[[3, 5], [5, 7]]", R"(["c10::Half", "c10::Half"])"),
            Moved(2 * (15 + 35), 2 * 21));
  EXPECT_EQ(BytesOf("aten::addmm", "[[7], [3, 5], [5, 7]]", R"(["float", "float", "float"])"),
            Moved(4 * (7 + 15 + 35), 4 * 21));
  EXPECT_EQ(BytesOf("aten::bmm", "[[2, 3, 5], [2, 5, 7]]", R"(["float", "float"])"),
            Moved(4 * (30 + 70), 4 * 42));
  EXPECT_EQ(BytesOf("aten::mv", "[[3, 5], [5]]", R"(["float", "float"])"), Moved(4 * 20, 4 * 3));
}

constexpr std::string_view kThree = R"(["float", "float", "float"])";

TEST(OpBytesTest, AConvolutionWritesItsOutputAndATransposedOneToo) {
  EXPECT_EQ(BytesOf("aten::convolution", "[[2, 3, 9, 9], [8, 3, 3, 3], [8]]", kThree,
                    R"(["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1"])"),
            Moved(4 * (2 * 3 * 81 + 8 * 27 + 8), 4 * 2 * 8 * 25));
  EXPECT_EQ(BytesOf("aten::convolution", "[[2, 8, 5, 5], [8, 3, 3, 3], []]", kThree,
                    R"(["", "", "", "[2, 2]", "[1, 1]", "[1, 1]", "True", "[0, 0]", "1"])"),
            Moved(4 * (2 * 8 * 25 + 8 * 27), 4 * 2 * 3 * 81));
}

TEST(OpBytesTest, AConvolutionsBackwardMovesOnlyWhatItsGradientsNeed) {
  constexpr std::string_view kShapes = "[[2, 8, 5, 5], [2, 3, 9, 9], [8, 3, 3, 3]]";
  const auto values = [](std::string_view mask) {
    return R"(["", "", "", "[8]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", ")" +
           std::string(mask) + "\"]";
  };
  const int64_t grad = 4 * 2 * 8 * 25, x = 4 * 2 * 3 * 81, w = 4 * 8 * 27;
  EXPECT_EQ(BytesOf("aten::convolution_backward", kShapes, kThree, values("[True, True, False]")),
            Moved(grad + x + w, x + w));
  EXPECT_EQ(BytesOf("aten::convolution_backward", kShapes, kThree, values("[False, True, True]")),
            Moved(grad + x, w + 4 * 8));
}

constexpr std::string_view kSixHalves =
    R"(["c10::Half", "c10::Half", "c10::Half", "c10::Half", "c10::Half", "float"])";

TEST(OpBytesTest, FusedAttentionReadsAndWritesNoScores) {
  EXPECT_EQ(BytesOf("aten::_scaled_dot_product_flash_attention",
                    "[[2, 4, 16, 8], [2, 4, 32, 8], [2, 4, 32, 8]]", kSixHalves),
            Moved(2 * 64 * (16 + 32 + 32), 2 * 64 * 16 + 4 * 8 * 16));
  EXPECT_EQ(BytesOf("aten::_scaled_dot_product_flash_attention_backward",
                    "[[2, 4, 16, 8], [2, 4, 16, 8], [2, 4, 32, 8], [2, 4, 32, 8], [2, 4, 16, 8], "
                    "[2, 4, 16]]",
                    kSixHalves),
            Moved(2 * 64 * (16 + 16 + 32 + 32 + 16) + 4 * 8 * 16, 2 * 64 * (16 + 32 + 32)));
}

TEST(OpBytesTest, NormsReadTheirInputOnceAndKeepStatistics) {
  constexpr std::string_view kTypes = R"(["c10::Half", "ScalarList", "c10::Half", "c10::Half"])";
  EXPECT_EQ(BytesOf("aten::native_layer_norm", "[[4, 6, 8], [], [8], [8]]", kTypes),
            Moved(2 * (192 + 16), 2 * 192 + 2 * 24 * 4));
  EXPECT_EQ(
      BytesOf("aten::native_layer_norm_backward", "[[4, 8], [4, 8], [], [4, 1], [4, 1], [8], [8]]",
              R"(["float", "float", "ScalarList", "float", "float", "float", "float"])"),
      Moved(4 * (64 + 8 + 8), 4 * (32 + 16)));
  constexpr std::string_view kBatch = R"(["float", "float", "float", "float", "float"])";
  EXPECT_EQ(BytesOf("aten::native_batch_norm", "[[2, 3, 4], [3], [3], [3], [3]]", kBatch,
                    R"(["", "", "", "", "", "True"])"),
            Moved(4 * (24 + 12), 4 * (24 + 6 + 6)));
  EXPECT_EQ(BytesOf("aten::native_batch_norm", "[[2, 3, 4], [3], [3], [3], [3]]", kBatch,
                    R"(["", "", "", "", "", "False"])"),
            Moved(4 * (24 + 12), 4 * 24));
  EXPECT_EQ(BytesOf("aten::native_group_norm", "[[2, 4, 9], [4], [4]]", kThree,
                    R"(["", "", "", "2", "4", "9", "2", "1e-5"])"),
            Moved(4 * (72 + 8), 4 * (72 + 8)));
}

TEST(OpBytesTest, BackwardsOfNorms) {
  EXPECT_EQ(
      BytesOf("aten::native_batch_norm_backward", "[[2, 3, 4], [2, 3, 4], [3], [3], [3], [3], [3]]",
              R"(["float", "float", "float", "float", "float", "float", "float"])"),
      Moved(4 * (24 + 24 + 9), 4 * (24 + 6)));
  EXPECT_EQ(
      BytesOf("aten::native_group_norm_backward", "[[2, 4, 9], [2, 4, 9], [2, 2], [2, 2], [4]]",
              R"(["float", "float", "float", "float", "float"])"),
      Moved(4 * (72 + 72 + 8 + 4), 4 * (72 + 8)));
}

TEST(OpBytesTest, SoftmaxAndItsBackward) {
  EXPECT_EQ(BytesOf("aten::_softmax", "[[4, 8], [], []]", R"(["c10::Half", "Scalar", "Scalar"])",
                    R"(["", "1", "True"])"),
            Moved(64, 128));
  EXPECT_EQ(BytesOf("aten::_softmax_backward_data", "[[4, 8], [4, 8], [], []]",
                    R"(["float", "float", "Scalar", "Scalar"])"),
            Moved(256, 128));
}

TEST(OpBytesTest, Pools) {
  constexpr std::string_view kTypes = R"(["float", "ScalarList"])";
  EXPECT_EQ(BytesOf("aten::max_pool2d_with_indices", "[[1, 2, 9, 9], []]", kTypes,
                    R"(["", "[3, 3]", "[2, 2]", "[1, 1]", "[1, 1]", "False"])"),
            Moved(4 * 162, 50 * (4 + 8)));
  EXPECT_EQ(BytesOf("aten::avg_pool2d", "[[1, 2, 9, 9], []]", kTypes,
                    R"(["", "[2, 2]", "[]", "[0, 0]", "True"])"),
            Moved(4 * 162, 4 * 50));
  EXPECT_EQ(
      BytesOf("aten::_adaptive_avg_pool2d", "[[1, 2, 9, 9], []]", kTypes, R"(["", "[3, 3]"])"),
      Moved(4 * 162, 4 * 18));
  EXPECT_EQ(BytesOf("aten::_adaptive_avg_pool2d_backward", "[[1, 2, 3, 3], [1, 2, 9, 9]]",
                    R"(["float", "float"])"),
            Moved(4 * 18, 4 * 162));
  EXPECT_EQ(BytesOf("aten::max_pool2d_with_indices_backward",
                    "[[1, 2, 5, 5], [1, 2, 9, 9], [], [], [], [], [], [1, 2, 5, 5]]",
                    R"(["float", "float", "", "", "", "", "", "long int"])"),
            Moved(50 * (4 + 8), 4 * 162));
}

TEST(OpBytesTest, WhatIsIndexedIsReadAndNoMore) {
  constexpr std::string_view kTypes = R"(["c10::Half", "long int", "Scalar", "Scalar", "Scalar"])";
  EXPECT_EQ(BytesOf("aten::embedding", "[[1000, 8], [2, 3], [], [], []]", kTypes),
            Moved(6 * 8 + 6 * 16, 6 * 16));
  // Of four rows nine indices read no more than four.
  EXPECT_EQ(BytesOf("aten::embedding", "[[4, 8], [9], [], [], []]", kTypes),
            Moved(9 * 8 + 4 * 16, 9 * 16));
  EXPECT_EQ(BytesOf("aten::embedding_dense_backward", "[[2, 3, 8], [2, 3], []]",
                    R"(["c10::Half", "long int", "Scalar"])", R"(["", "", "1000"])"),
            Moved(6 * 16 + 6 * 8, 1000 * 16));
  EXPECT_EQ(BytesOf("aten::index_select", "[[100, 8], [], [5]]",
                    R"(["float", "Scalar", "long int"])", R"(["", "0", ""])"),
            Moved(5 * 8 + 5 * 32, 5 * 32));
  EXPECT_EQ(
      BytesOf("aten::gather", "[[100, 8], [], [100, 1]]", R"(["float", "Scalar", "long int"])"),
      Moved(100 * 8 + 100 * 4, 100 * 4));
  EXPECT_EQ(BytesOf("aten::scatter_add_", "[[50], [], [9], [9]]",
                    R"(["float", "Scalar", "long int", "float"])"),
            Moved(9 * 8 + 9 * 4 + 9 * 4, 9 * 4));
  EXPECT_EQ(
      BytesOf("aten::_index_put_impl_", "[[6, 20], [], [9], [], []]",
              R"(["float", "", "float", "Scalar", "Scalar"])", R"(["", "", "", "False", "False"])"),
      Moved(9 * 4, 9 * 4));
}

TEST(OpBytesTest, LossesReadTheTargetsNumberOfEachRow) {
  constexpr std::string_view kTypes = R"(["float", "long int"])";
  EXPECT_EQ(BytesOf("aten::nll_loss_forward", "[[64, 1000], [64]]", kTypes),
            Moved(64 * 8 + 64 * 4, 0));
  EXPECT_EQ(BytesOf("aten::nll_loss_backward", "[[], [64, 1000], [64]]",
                    R"(["float", "float", "long int"])"),
            Moved(64 * 8, 64'000 * 4));
  EXPECT_EQ(BytesOf("aten::mse_loss", "[[8, 4], [8, 4], []]", R"(["float", "float", "Scalar"])",
                    R"(["", "", "1"])"),
            Moved(256, 0));
}

TEST(OpBytesTest, DropoutWritesAMaskOfBytes) {
  EXPECT_EQ(
      BytesOf("aten::native_dropout", "[[8, 4], [], []]", R"(["c10::Half", "Scalar", "Scalar"])"),
      Moved(64, 64 + 32));
}

TEST(OpBytesTest, ListsCountAllTheirTensors) {
  constexpr std::string_view kLists =
      "[[[4], [2, 3]], [[4], [2, 3]], [[4], [2, 3]], "
      "[[4], [2, 3]], [], [[], []]]";
  constexpr std::string_view kTypes =
      R"(["TensorList", "TensorList", "TensorList", "TensorList", "TensorList", "TensorList"])";
  const auto of = [&](std::string_view name, std::string_view shapes) {
    return BytesOf({.name = name, .shapes = shapes, .types = kTypes, .list_element_bytes = 4});
  };
  EXPECT_EQ(of("aten::_foreach_add_", "[[[4], [2, 3]], [[4], [2, 3]], []]"), Moved(80, 40));
  EXPECT_EQ(of("aten::_foreach_sqrt", "[[[4], [2, 3]]]"), Moved(40, 40));
  EXPECT_EQ(of("aten::_foreach_addcdiv_", "[[[4]], [[4]], [[4]], []]"), Moved(48, 16));
  EXPECT_EQ(of("aten::_fused_adamw_", kLists), Moved(160, 120));
  EXPECT_EQ(of("aten::_fused_sgd_", "[[[4]], [[4]], [[4]]]"), Moved(48, 32));
  EXPECT_EQ(of("aten::_foreach_norm", "[[[4], [2, 3]], []]"), Moved(40, 0));
  EXPECT_EQ(BytesOf({.name = "aten::cat",
                     .shapes = "[[[2, 3], [2, 5]], []]",
                     .types = R"(["TensorList", "Scalar"])",
                     .list_element_bytes = 2}),
            Moved(32, 32));
}

TEST(OpBytesTest, AListIsOfTheTypeOfWhatItIsJoinedTo) {
  EXPECT_EQ(BytesOf({.name = "aten::cat",
                     .shapes = "[[[2, 3], [2, 5]], []]",
                     .types = R"(["TensorList", "Scalar"])",
                     .output_shapes = "[[2, 8]]",
                     .output_types = R"(["c10::Half"])"}),
            Moved(32, 32));
}

TEST(OpBytesTest, WhatCannotBeKnownIsNotGuessed) {
  const auto known = [](const OpSignature& op) { return CountBytes(op).known; };
  EXPECT_EQ(known({.name = "aten::my_own", .shapes = "[[4]]", .types = R"(["float"])"}),
            BytesKnown::kNoFormula);
  EXPECT_EQ(known({.name = "mine::relu", .shapes = "[[4]]", .types = R"(["float"])"}),
            BytesKnown::kNoFormula);
  EXPECT_EQ(known({.name = "aten::relu"}), BytesKnown::kNoShapes);
  EXPECT_EQ(known({.name = "aten::relu", .shapes = "[[4]]"}), BytesKnown::kNoType);
  EXPECT_EQ(known({.name = "aten::relu", .shapes = "[[4]]", .types = R"(["posit16"])"}),
            BytesKnown::kNoType);
  EXPECT_EQ(known({.name = "aten::cat",
                   .shapes = "[[[2, 3], [2, 5]], []]",
                   .types = R"(["TensorList", "Scalar"])"}),
            BytesKnown::kNoType);
  EXPECT_EQ(known({.name = "aten::cat",
                   .shapes = "[[], []]",
                   .types = R"(["TensorList", "Scalar"])",
                   .list_element_bytes = 2}),
            BytesKnown::kNoShapes);
}

TEST(OpBytesTest, AnyTextIsCountedWithoutHarm) {
  for (const std::string_view shapes :
       {"[", "]", "[[]", "[[[3, 4]], 5]", "[[-3, 4], [4, -5]]", "null", "[[9999999999999999999]]",
        "[[4611686018427387904, 4], [4, 4611686018427387904]]", "[[0, 0], [0, 0]]"}) {
    for (const std::string_view values : {"", "[", R"(["", "[", "]", "", "[0]", "x", "1")"}) {
      for (const std::string_view name :
           {"aten::mm", "aten::sum", "aten::convolution", "aten::convolution_backward",
            "aten::native_layer_norm", "aten::max_pool2d_with_indices", "aten::embedding",
            "aten::index_select", "aten::cat", "aten::_fused_adam_", "aten::addmm",
            "aten::_scaled_dot_product_flash_attention", "aten::native_batch_norm"}) {
        const ByteCount count = CountBytes({.name = name,
                                            .shapes = shapes,
                                            .strides = shapes,
                                            .types = R"(["float", "float", "float"])",
                                            .values = values,
                                            .output_shapes = shapes,
                                            .output_types = values});
        EXPECT_GE(count.total(), 0) << name << shapes;
      }
    }
  }
}

}  // namespace
}  // namespace ranktap::collector

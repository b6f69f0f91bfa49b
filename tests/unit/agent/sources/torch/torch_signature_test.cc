// Inputs as PyTorch has them in memory, with made-up offsets and tags.
#include "agent/sources/torch/torch_signature.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <vector>

#include "tests/unit/agent/core/rings.h"

namespace ranktap::agent {
namespace {

constexpr TorchLayout kLayout{.found = true,
                              .sizes = 8,
                              .dtype = 72,
                              .list = 16,
                              .none = 0,
                              .tensor = 1,
                              .number = 4,
                              .real = 2,
                              .flag = 5,
                              .generic_list = 12};
constexpr uint16_t kFloat = 6, kLong = 4;

class TorchSignatureTest : public Rings {
 protected:
  void SetUp() override { ForgetSignatures(); }

  void Add(uint32_t tag, uint64_t payload) {
    std::array<std::byte, kIValueBytes> value{};
    std::memcpy(value.data(), &payload, sizeof(payload));
    std::memcpy(value.data() + 8, &tag, sizeof(tag));
    values_.insert(values_.end(), value.begin(), value.end());
  }
  void AddTensor(std::vector<int64_t> sizes, uint16_t dtype = kFloat) {
    auto& impl = tensors_.emplace_back();
    const size_t dims = sizes.size();
    std::memcpy(impl.data() + kLayout.sizes, &dims, sizeof(dims));
    std::memcpy(impl.data() + kLayout.dtype, &dtype, sizeof(dtype));
    std::byte* const at = impl.data() + kLayout.sizes + sizeof(dims);
    if (dims > kInlineSizes) {
      const int64_t* const elsewhere = kept_.emplace_back(std::move(sizes)).data();
      std::memcpy(at, &elsewhere, sizeof(elsewhere));
    } else {
      std::memcpy(at, sizes.data(), dims * sizeof(int64_t));
    }
    Add(kLayout.tensor, reinterpret_cast<uint64_t>(impl.data()));
  }
  // The number, with the inputs gone afterwards; 0: there was none.
  uint64_t Sign(const char* name = "aten::mm") {
    uint64_t number = 0;
    OnNewThread([&](ThreadState& thread) {
      const TorchInputs inputs{values_.data(), values_.size() / kIValueBytes, &kLayout};
      number = SignatureOf(thread, inputs, name, 1, 2);
    });
    values_.clear();
    return number;
  }

 private:
  std::vector<std::byte> values_;
  std::deque<std::array<std::byte, 128>> tensors_;
  std::deque<std::vector<int64_t>> kept_;
};

TEST_F(TorchSignatureTest, EqualShapesAndTypesHaveOneNumberAndOthersAnother) {
  AddTensor({3, 5});
  const uint64_t number = Sign();
  EXPECT_NE(number, 0u);
  AddTensor({3, 5});
  EXPECT_EQ(Sign(), number);
  AddTensor({5, 3});
  EXPECT_NE(Sign(), number);
  AddTensor({3, 5}, kLong);
  EXPECT_NE(Sign(), number);
  AddTensor({3, 5});
  Add(kLayout.none, 0);
  EXPECT_NE(Sign(), number);
}

TEST_F(TorchSignatureTest, SizesThatDoNotFitIntoTheTensorAreReadWhereTheyAre) {
  AddTensor({2, 1, 3, 1, 2, 7});
  const uint64_t number = Sign();
  AddTensor({2, 1, 3, 1, 2, 8});
  EXPECT_NE(Sign(), number);
  AddTensor({2, 1, 3, 1, 2, 7});
  EXPECT_EQ(Sign(), number);
}

TEST_F(TorchSignatureTest, ValuesCountOnlyWhereAFormulaOfFlopsLooksAtThem) {
  for (const auto& [name, is_read] :
       {std::pair("aten::conv2d", true), std::pair("aten::add", false)}) {
    Add(kLayout.number, 1);
    const uint64_t number = Sign(name);
    Add(kLayout.number, 2);
    EXPECT_EQ(Sign(name) != number, is_read) << name;
  }
}

TEST_F(TorchSignatureTest, AnOperatorWithoutInputsHasNoneAndOneWithTooManyIsCounted) {
  EXPECT_EQ(Sign(), 0u);
  EXPECT_EQ(TakeWhatIsNotDescribed(), "");
  for (int i = 0; i < 65; ++i) Add(kLayout.none, 0);
  EXPECT_EQ(Sign(), 0u);
  EXPECT_NE(TakeWhatIsNotDescribed().find("of 1 operator calls"), std::string::npos);
  EXPECT_EQ(TakeWhatIsNotDescribed(), "");
}

TEST_F(TorchSignatureTest, ANewWindowHasNewNumbers) {
  AddTensor({3, 5});
  const uint64_t number = Sign();
  ForgetSignatures();
  AddTensor({3, 5});
  EXPECT_NE(Sign(), number);
}

}  // namespace
}  // namespace ranktap::agent

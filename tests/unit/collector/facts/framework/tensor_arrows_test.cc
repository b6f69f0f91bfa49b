// Who made what an operator takes, where the address alone would say something wrong.
#include "collector/facts/framework/tensor_arrows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "collector/facts/framework/block_layouts.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kTensor = 0x1000, kView = 0x2000, kMemory = 0x7000;

class TensorArrowsTest : public testing::Test {
 protected:
  TensorArrowsTest() { trace_.writers.resize(1); }

  // Takes and returns pairs of a tensor and its memory.
  using Tensors = std::vector<std::pair<uint64_t, uint64_t>>;
  uint32_t Operator(std::string_view name, int64_t start, int64_t end, const Tensors& taken,
                    const Tensors& returned, uint32_t parent = kNone) {
    Operators& ops = trace_.operators;
    const auto op = static_cast<uint32_t>(ops.size());
    ops.start.push_back(start);
    ops.end.push_back(end);
    ops.name.push_back(trace_.dictionary.AppendString(name));
    ops.writer.push_back(0);
    ops.kind.push_back(0);
    ops.parent.push_back(parent);
    Use(op, start, false, taken);
    Use(op, end, true, returned);
    return op;
  }

  void Use(uint32_t op, int64_t time, bool is_output, const Tensors& tensors) {
    uint8_t place = 0;
    for (const auto& [tensor, memory] : tensors) {
      trace_.tensor_uses.push_back({.time = time,
                                    .op = op,
                                    .place = place++,
                                    .is_output = is_output,
                                    .tensor = tensor,
                                    .memory = memory});
    }
  }

  void Allocation(int64_t time, int64_t bytes) {
    Allocations& all = trace_.allocations;
    all.start.push_back(time);
    all.end.push_back(time);
    all.writer.push_back(0);
    all.bytes.push_back(bytes);
    all.address.push_back(kMemory);
  }

  std::vector<std::pair<uint32_t, uint32_t>> Arrows() {
    std::stable_sort(trace_.tensor_uses.begin(), trace_.tensor_uses.end(),
                     [](const TensorUse& a, const TensorUse& b) { return a.time < b.time; });
    std::vector<std::pair<uint32_t, uint32_t>> arrows;
    for (const TensorArrow& arrow : TensorArrows(trace_)) arrows.emplace_back(arrow.from, arrow.to);
    return arrows;
  }

  using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;
  Trace trace_;
};

TEST_F(TensorArrowsTest, AnAddressThatWasGivenBackIsNotTheSameTensor) {
  Operator("aten::mm", 10, 20, {}, {{kTensor, kMemory}});
  const uint32_t reader = Operator("aten::relu", 30, 40, {{kTensor, kMemory}}, {});
  Allocation(45, -64);
  Operator("aten::neg", 50, 60, {{kTensor, kMemory}}, {});
  EXPECT_EQ(Arrows(), (Pairs{{0, reader}}));
}

TEST_F(TensorArrowsTest, WithoutTheReleaseItWouldBe) {
  Operator("aten::mm", 10, 20, {}, {{kTensor, kMemory}});
  Operator("aten::neg", 50, 60, {{kTensor, kMemory}}, {});
  EXPECT_EQ(Arrows(), (Pairs{{0, 1}}));
}

TEST_F(TensorArrowsTest, OfAnotherWindowNothingIsKnown) {
  Operator("aten::mm", 10, 20, {}, {{kTensor, kMemory}});
  v1::Dictionary names;
  names.add_nvtx_domains()->set_id(1);
  names.mutable_nvtx_domains(0)->set_text("ranktap.memory");
  const std::string bytes = names.SerializeAsString();
  ASSERT_TRUE(trace_.dictionary.Add(std::as_bytes(std::span(bytes))));
  Ranges& marks = trace_.marks;
  marks.start.push_back(30), marks.end.push_back(30), marks.writer.push_back(0);
  marks.domain.push_back(1), marks.depth.push_back(0), marks.kind.push_back(0);
  marks.name.push_back(trace_.dictionary.AppendString("window"));
  Operator("aten::neg", 50, 60, {{kTensor, kMemory}}, {});
  EXPECT_EQ(Arrows(), Pairs{});
}

TEST_F(TensorArrowsTest, AChangeThroughAViewIsTheLastChangeOfTheWholeTensor) {
  const uint32_t made = Operator("aten::ones", 10, 20, {}, {{kTensor, kMemory}});
  const uint32_t view = Operator("aten::slice", 30, 40, {{kTensor, kMemory}}, {{kView, kMemory}});
  const uint32_t change = Operator("aten::mul_", 50, 60, {{kView, kMemory}}, {{kView, kMemory}});
  const uint32_t reader = Operator("aten::sum", 70, 80, {{kTensor, kMemory}}, {});
  EXPECT_EQ(Arrows(), (Pairs{{made, view}, {view, change}, {change, reader}}));
}

TEST_F(TensorArrowsTest, OperatorsThatReturnNothingChangeTheirFirstInput) {
  Operator("aten::_foreach_add_", 10, 20, {{kTensor, kMemory}, {kView, kMemory + 64}}, {});
  Operator("aten::sum", 30, 40, {{kTensor, kMemory}}, {});
  Operator("aten::sum", 50, 60, {{kView, kMemory + 64}}, {});
  EXPECT_EQ(Arrows(), (Pairs{{0, 1}}));
}

TEST_F(TensorArrowsTest, AViewOfWhatWasThereBeforeIsNoMakerOfIt) {
  Operator("aten::t", 10, 20, {{kTensor, kMemory}}, {{kView, kMemory}});
  Operator("aten::mm", 30, 40, {{kTensor, kMemory}}, {});
  EXPECT_EQ(Arrows(), Pairs{});
}

TEST_F(TensorArrowsTest, OfOperatorsAroundEachOtherTheOutermostsHaveTheArrow) {
  const uint32_t outer = Operator("aten::linear", 10, 40, {}, {{kTensor, kMemory}});
  Operator("aten::addmm", 20, 30, {}, {{kTensor, kMemory}}, outer);
  const uint32_t reader = Operator("aten::relu", 50, 80, {{kTensor, kMemory}}, {});
  Operator("aten::clamp_min", 60, 70, {{kTensor, kMemory}}, {}, reader);
  EXPECT_EQ(Arrows(), (Pairs{{outer, reader}}));
}

TEST_F(TensorArrowsTest, ATensorThatNoOperatorReturnedComesFromTheMakerOfItsMemory) {
  Operator("aten::mm", 10, 20, {}, {{kTensor, kMemory}});
  Operator("aten::mul", 30, 40, {{kView, kMemory}}, {});
  EXPECT_EQ(Arrows(), (Pairs{{0, 1}}));
}

TEST_F(TensorArrowsTest, ABlocksLayoutIsWhatAnOperatorReturnedInItAndNoSmallerViewOfIt) {
  Operator("aten::slice", 10, 20, {{kTensor, kMemory}}, {});
  Operator("aten::mm", 30, 40, {{kTensor, kMemory}}, {{kView, kMemory + 64}});
  Operators& ops = trace_.operators;
  const auto text = [&](std::string_view value) { return trace_.dictionary.AppendString(value); };
  ops.shapes.PadTo(2), ops.types.PadTo(2), ops.output_shapes.PadTo(2), ops.output_types.PadTo(2);
  ops.shapes[0] = text("[[2], []]"), ops.shapes[1] = text("[[4, 2], []]");
  ops.types[0] = ops.types[1] = text("[\"float\", \"Scalar\"]");
  ops.output_shapes[1] = text("[[8]]"), ops.output_types[1] = text("[\"c10::Half\"]");
  Arrows();
  const BlockLayouts layouts(trace_);
  EXPECT_EQ(layouts.Of({.start = 0, .end = 50, .bytes = 32, .address = kMemory}), "{4,2} float");
  EXPECT_EQ(layouts.Of({.start = 0, .end = 50, .bytes = 512, .address = kMemory + 64}),
            "{8} c10::Half");
  EXPECT_EQ(layouts.Of({.start = 45, .end = 50, .bytes = 512, .address = kMemory + 64}), "");
}

}  // namespace
}  // namespace ranktap::collector

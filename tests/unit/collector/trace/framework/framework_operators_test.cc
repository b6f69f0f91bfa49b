#include "collector/trace/framework/framework_operators.h"

#include <gtest/gtest.h>

#include <cstring>

#include "proto/operator_payload.h"

namespace ranktap::collector {
namespace {

class FrameworkOperatorsTest : public testing::Test {
 protected:
  FrameworkOperatorsTest() {
    trace_.writers.resize(1);
    v1::Dictionary names;
    auto* const domain = names.add_nvtx_domains();
    domain->set_id(1);
    domain->set_text("ranktap.op");
    const std::string bytes = names.SerializeAsString();
    EXPECT_TRUE(trace_.dictionary.Add(std::as_bytes(std::span(bytes))));
  }

  void AddRange(Ranges* ranges, std::string_view name, uint16_t domain, int64_t start,
                int64_t end) {
    ranges->start.push_back(start);
    ranges->end.push_back(end);
    ranges->name.push_back(trace_.dictionary.AppendString(name));
    ranges->domain.push_back(domain);
    ranges->writer.push_back(0);
    ranges->depth.push_back(0);
    ranges->kind.push_back(0);
  }

  void AddMark(std::string_view lines) {
    AddRange(&trace_.marks, "operators", 1, 0, 0);
    const uint64_t head[2] = {0, lines.size()};
    std::string payload(sizeof(head), '\0');
    std::memcpy(payload.data(), head, sizeof(head));
    trace_.payloads.push_back(payload + std::string(lines));
    trace_.marks.inline_payload.PadTo(trace_.marks.size());
    trace_.marks.inline_payload.back() = static_cast<uint32_t>(trace_.payloads.size());
  }

  std::string_view Text(uint32_t id) const { return trace_.dictionary.String(id); }

  Trace trace_;
};

TEST_F(FrameworkOperatorsTest, RangesWithAnOperatorsIdBecomeOperatorsAndOthersStayRanges) {
  AddRange(&trace_.ranges, "epoch 1, step 2", 0, 0, 100);
  AddRange(&trace_.ranges, "aten::mm, seq = 7, op_id = 12", 0, 10, 20);
  AddRange(&trace_.ranges, "mine, op_id = 3", 1, 10, 20);
  trace_.ranges.payload.push_back(5);
  TakeFrameworkOperators(&trace_);
  ASSERT_EQ(trace_.ranges.size(), 2u);
  EXPECT_EQ(Text(trace_.ranges.name[0]), "epoch 1, step 2");
  EXPECT_EQ(trace_.ranges.payload.At(0), 5u);
  ASSERT_EQ(trace_.operators.size(), 1u);
  EXPECT_EQ(Text(trace_.operators.name[0]), "aten::mm");
  EXPECT_EQ(trace_.operators.start[0], 10);
  EXPECT_EQ(trace_.operators.sequence.At(0), 8u);
  EXPECT_EQ(trace_.operators.record_function.At(0), 12u);
}

TEST_F(FrameworkOperatorsTest, ARangeWithAnOperatorsPayloadIsOne) {
  AddRange(&trace_.ranges, "aten::mm", 0, 10, 20);
  Ranges& ranges = trace_.ranges;
  ranges.payload_type.push_back(proto::kOperatorPayload);
  ranges.payload.push_back(12);
  ranges.category.push_back(8);
  ranges.color.push_back(1);
  TakeFrameworkOperators(&trace_);
  EXPECT_EQ(trace_.ranges.size(), 0u);
  EXPECT_EQ(Text(trace_.operators.name[0]), "aten::mm");
  EXPECT_EQ(trace_.operators.record_function.At(0), 12u);
  EXPECT_EQ(trace_.operators.sequence.At(0), (uint64_t{1} << 32) + 8);
}

TEST_F(FrameworkOperatorsTest, ShapesAreJoinedByIdAndDamagedLinesAreLeftOut) {
  AddRange(&trace_.ranges, "aten::mm, seq = 7, op_id = 12", 0, 10, 20);
  AddRange(&trace_.ranges, "step, op_id = 13", 0, 30, 40);
  AddMark(
      "[12,1,1,\"[[3, 5], [5, 7]]\",\"[]\",\"\"]\n[12,\n{}\n[-1,0,0,\"\",\"\",\"\"]\n"
      "[13,0,7,\"[]\",\"[]\",\"\"]\n[99,0,0,\"[]\",\"[]\",\"\"]");
  TakeFrameworkOperators(&trace_);
  const Operators& ops = trace_.operators;
  EXPECT_EQ(Text(ops.shapes.At(0)), "[[3, 5], [5, 7]]");
  EXPECT_EQ(ops.scope.At(0), 1);
  EXPECT_EQ(static_cast<OperatorKind>(ops.kind[0]), OperatorKind::kOperator);
  EXPECT_EQ(static_cast<OperatorKind>(ops.kind[1]), OperatorKind::kAnnotation);
}

TEST_F(FrameworkOperatorsTest, ShapesOfAProgramsOwnEmitNvtxAreInTheRange) {
  AddRange(&trace_.ranges,
           "aten::mm, seq = 7, op_id = 12, sizes = [[3, 5], [5, 7]], input_op_ids = [(2,0), (3,0)]",
           0, 10, 20);
  TakeFrameworkOperators(&trace_);
  EXPECT_EQ(Text(trace_.operators.name[0]), "aten::mm");
  EXPECT_EQ(Text(trace_.operators.shapes.At(0)), "[[3, 5], [5, 7]]");
}

}  // namespace
}  // namespace ranktap::collector

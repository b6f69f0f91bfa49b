// Rules about the side of the ridge. Each pair of programs differs in one thing.
#include <gtest/gtest.h>

#include <string>

#include "collector/trace/operator_join.h"
#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

// 2.56 G values: 10.24 GB read and written in 16 bits, for which an H100 needs 3.06 ms.
constexpr std::string_view kLarge = "[[51200, 50000], [], []]";
constexpr std::string_view kScores = "[[64, 16, 1250, 2000], [], []]";
constexpr std::string_view kSmall = "[[64, 64], [], []]";

// 10 steps of 10 ms on an H100 that is never idle: this operator takes 4 ms of each.
InsightProgram AProgramThatRuns(std::string_view name, std::string_view shapes,
                                std::string_view device = "NVIDIA H100 80GB HBM3") {
  InsightProgram program;
  v1::Device* const described = program->trace().hello.add_devices();
  described->set_id(0);
  described->set_name(std::string(device));
  described->set_compute_major(9);
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddOperator(name, at, at + 3 * kUs);
    program->AddKernel(
        {.name = "a_kernel", .launched = at, .start = at + 4 * kUs, .end = at + 4 * kMs});
    program->AddKernel(
        {.name = "another", .launched = at + 5 * kUs, .start = at + 4 * kMs, .end = at + 10 * kMs});
  }
  Trace& trace = program->trace();
  const uint32_t text = trace.dictionary.AppendString(shapes);
  const uint32_t types =
      trace.dictionary.AppendString(R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"])");
  for (size_t op = 0; op < trace.operators.size(); ++op) {
    trace.operators.shapes.push_back(text);
    trace.operators.types.push_back(types);
  }
  JoinOperators(&trace);
  return program;
}

TEST(MemoryBoundRule, FiresOnElementWiseWorkAtTheMemorysRoof) {
  InsightProgram program = AProgramThatRuns("aten::gelu", kLarge);
  const Insight found = TheFinding(program.run(), "memory-bound");
  // Half: fused, it does not read what the one before it wrote.
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 0.5 * 3'996'000, 2'000);
}

TEST(MemoryBoundRule, IsSilentAboutLittleWork) {
  InsightProgram program = AProgramThatRuns("aten::gelu", kSmall);
  EXPECT_TRUE(IsSilent(program.run(), "memory-bound"));
}

TEST(MemoryBoundRule, IsSilentAboutCopies) {
  InsightProgram program = AProgramThatRuns("aten::clone", kLarge);
  EXPECT_TRUE(IsSilent(program.run(), "memory-bound"));
}

TEST(MemoryBoundRule, IsSilentOfADeviceWithoutKnownPeaks) {
  InsightProgram program = AProgramThatRuns("aten::gelu", kLarge, "a board of tomorrow");
  EXPECT_TRUE(IsSilent(program.run(), "memory-bound"));
}

TEST(ProductsBelowRoofRule, FiresBelowHalfOfTheRoof) {
  // 1.1 TFLOP, for which an H100 needs 1.11 ms of the 4.
  InsightProgram program = AProgramThatRuns("aten::mm", "[[8192, 8192], [8192, 8192]]");
  const Insight found = TheFinding(program.run(), "products-below-roof");
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 3'996'000 - 1'111'300, 3'000);
}

TEST(ProductsBelowRoofRule, IsSilentNearTheRoof) {
  InsightProgram program = AProgramThatRuns("aten::mm", "[[8192, 8192], [8192, 24576]]");
  EXPECT_TRUE(IsSilent(program.run(), "products-below-roof"));
}

TEST(UnfusedAttentionRule, FiresOnScoresInMemory) {
  InsightProgram program = AProgramThatRuns("aten::_softmax", kScores);
  const Insight found = TheFinding(program.run(), "unfused-attention");
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 3'996'000, 2'000);
  EXPECT_TRUE(IsSilent(program.run(), "memory-bound"));
}

TEST(UnfusedAttentionRule, IsSilentAboutASmallSoftmax) {
  InsightProgram program = AProgramThatRuns("aten::_softmax", kSmall);
  EXPECT_TRUE(IsSilent(program.run(), "unfused-attention"));
}

}  // namespace
}  // namespace ranktap::collector

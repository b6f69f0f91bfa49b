// Rules about the side of the ridge. Each pair of programs differs in one thing.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "collector/facts/roofline/roofs.h"
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

// 10 steps of 10 ms on a processor of 1 TFLOP/s and 100 GB/s, which calls the operator so often.
InsightProgram AProgramOnTheHost(std::string_view name, std::string_view shapes, int calls = 1,
                                 int64_t call_ns = 4 * kMs, bool is_calibrated = true) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    for (int call = 0; call < calls; ++call) {
      program->AddOperator(name, at + call * call_ns, at + (call + 1) * call_ns);
    }
  }
  Trace& trace = program->trace();
  const uint32_t text = trace.dictionary.AppendString(shapes);
  const uint32_t types = trace.dictionary.AppendString(R"(["float", "float", "float"])");
  for (size_t op = 0; op < trace.operators.size(); ++op) {
    trace.operators.shapes.push_back(text);
    trace.operators.types.push_back(types);
  }
  if (is_calibrated) {
    HostRoofs roofs{.host = "box", .processor = "CPU", .cores = 2};
    roofs.arithmetic = {{"fp32", "FMA", {5e11, 1}, {1e12, 1}}};
    roofs.levels = {{"memory", 1 << 28, {5e10, 1}, {1e11, 1}}};
    KnowHost(std::make_shared<const HostRoofs>(std::move(roofs)), trace);
  }
  return program;
}

TEST(HostRules, AProductFarBelowWhatTheProcessorCanDoIsNamedWithTheTimeItWouldNeed) {
  // 1.07 GFLOP: 1.074 ms of the 4.
  InsightProgram program = AProgramOnTheHost("aten::mm", "[[512, 1024], [1024, 1024]]");
  const Insight found = TheFinding(program.run(), "products-below-roof");
  EXPECT_NEAR(static_cast<double>(found.lost_ns), 4'000'000 - 1'073'742, 2'000);
  EXPECT_FALSE(found.saving_ns.has_value()) << "no path goes through a processor";
}

TEST(HostRules, AProductNearTheRoofIsNot) {
  InsightProgram program = AProgramOnTheHost("aten::mm", "[[1536, 1024], [1024, 1024]]");
  EXPECT_TRUE(IsSilent(program.run(), "products-below-roof"));
}

TEST(HostRules, ElementWiseWorkOfMemoryIsNamedAndCopiesAreNot) {
  // 268 MB of 4 ms at 100 GB/s: 2.7 ms.
  InsightProgram program = AProgramOnTheHost("aten::relu", "[[4096, 8192], [], []]");
  EXPECT_EQ(TheFinding(program.run(), "memory-bound").lost_ns, 2'000'000);
  InsightProgram copies = AProgramOnTheHost("aten::clone", "[[4096, 8192], [], []]");
  EXPECT_TRUE(IsSilent(copies.run(), "memory-bound"));
}

TEST(HostRules, ManyOperatorsWithNextToNoWorkAreNamedAndFewAreNot) {
  InsightProgram program = AProgramOnTheHost("aten::relu", "[[64, 64], [], []]", 100, 20 * kUs);
  const Insight found = TheFinding(program.run(), "tiny-operators");
  EXPECT_EQ(found.count, 1000);
  EXPECT_NEAR(static_cast<double>(found.lost_ns), 100 * (20'000 - 328), 200);
  InsightProgram few = AProgramOnTheHost("aten::relu", "[[64, 64], [], []]", 40, 20 * kUs);
  EXPECT_TRUE(IsSilent(few.run(), "tiny-operators"));
}

TEST(HostRules, WithoutMeasuredRoofsNothingIsSaidOfAProcessor) {
  InsightProgram program =
      AProgramOnTheHost("aten::mm", "[[512, 1024], [1024, 1024]]", 1, 4 * kMs, false);
  for (const char* const rule : {"products-below-roof", "memory-bound", "tiny-operators"}) {
    EXPECT_TRUE(IsUnchecked(program.run(), rule)) << rule;
  }
}

}  // namespace
}  // namespace ranktap::collector

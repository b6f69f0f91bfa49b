// Rules about the optimizer's step and what follows it. Each pair of programs differs in one thing.
#include <gtest/gtest.h>

#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

constexpr std::string_view kCopy =
    "void at::native::elementwise_kernel<128, 4, direct_copy_kernel_cuda>";

// Steps of 10 ms: the model's forward until 3 ms, the optimizer from 5 ms to 6 ms on the host, and
// a kernel of 2 ms, launched at `launched` of the step, that is the last of it.
InsightProgram AProgramThatCopies(int64_t launched, std::string_view name = kCopy) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddRange(proto::kModuleDomain, "Net", at, at + 3 * kMs);
    program->AddRange(proto::kPhaseDomain, proto::kOptimizerPhase, at + 5 * kMs, at + 6 * kMs);
    program->AddKernel({.launched = at, .start = at + 2 * kUs, .end = at + 8 * kMs});
    program->AddKernel(
        {.name = name, .launched = at + launched, .start = at + 8 * kMs, .end = at + 10 * kMs});
  }
  return program;
}

TEST(CopiesAfterStepRule, FiresOnCopiesBetweenTheOptimizerAndTheNextForward) {
  InsightProgram program = AProgramThatCopies(7 * kMs);
  const Insight found = TheFinding(program.run(), "copies-after-step");
  EXPECT_EQ(found.finding,
            "10 copies, casts and transposes run after the optimizer's step and before the next "
            "pass of the model, taking 2.000 ms of each 10.00 ms step (20.0 %).");
  EXPECT_EQ(found.saving_ns, 2 * kMs);
}

TEST(CopiesAfterStepRule, IsSilentOnCopiesBeforeIt) {
  InsightProgram program = AProgramThatCopies(4 * kMs);
  EXPECT_TRUE(IsSilent(program.run(), "copies-after-step"));
}

TEST(CopiesAfterStepRule, IsSilentOnWorkThatIsNoCopy) {
  InsightProgram program = AProgramThatCopies(7 * kMs, "loss_kernel");
  EXPECT_TRUE(IsSilent(program.run(), "copies-after-step"));
}

// As AProgramThatCopies, on a machine without a device: 100 reshapes of 20 us at `begin` of the
// step. Operators are recorded from step `recorded` to step `last`.
InsightProgram AHostThatReshapes(int64_t begin, std::string_view op = "aten::reshape",
                                 int64_t recorded = 0, int64_t last = INT64_MAX) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddRange(proto::kModuleDomain, "Net", at, at + 3 * kMs);
    program->AddRange(proto::kPhaseDomain, proto::kOptimizerPhase, at + 5 * kMs, at + 6 * kMs);
    const int64_t step = at / (10 * kMs);
    for (int64_t i = 0; i < 100 && recorded <= step && step <= last; ++i) {
      const int64_t start = at + begin + i * 20 * kUs;
      program->AddOperator(op, start, start + 20 * kUs, "train.py(12): loop");
    }
  }
  return program;
}

TEST(CopiesAfterStepRule, FiresOnReshapesOnAHostWithoutADevice) {
  InsightProgram program = AHostThatReshapes(7 * kMs);
  const Insight found = TheFinding(program.run(), "copies-after-step");
  EXPECT_EQ(found.finding,
            "100 reshapes, casts and copies a step run on the host after the optimizer's step and "
            "before the next pass of the model, taking 2.000 ms of each 10.00 ms step (20.0 %).");
  EXPECT_EQ(found.where, "aten::reshape at train.py(12): loop");
}

TEST(CopiesAfterStepRule, DividesWhatRecordedStepsCostByTheRecordedSteps) {
  InsightProgram program = AHostThatReshapes(7 * kMs, "aten::reshape", 9);
  program->trace().origin = TraceOrigin::kCapture;
  const Insight found = TheFinding(program.run(), "copies-after-step");
  EXPECT_EQ(found.finding,
            "100 reshapes, casts and copies a step run on the host after the optimizer's step and "
            "before the next pass of the model, taking 2.000 ms of each 10.00 ms step (20.0 %) in "
            "the 1 step whose operators are recorded.");
  EXPECT_EQ(found.lost_ns, 2 * kMs);
}

TEST(CopiesAfterStepRule, TakesAStepOfTheWarmUpWhereNoOtherHasItsOperatorsRecorded) {
  InsightProgram program = AHostThatReshapes(7 * kMs, "aten::reshape", 0, 0);
  program->trace().origin = TraceOrigin::kCapture;
  program->trace().ranges.start.Set(0, -10 * kMs);  // twice as long as the others
  const Insight found = TheFinding(program.run(), "copies-after-step");
  EXPECT_EQ(found.finding,
            "100 reshapes, casts and copies a step run on the host after the optimizer's step and "
            "before the next pass of the model, taking 2.000 ms of each 20.00 ms step (10.0 %) in "
            "the 1 step whose operators are recorded, of the warm-up.");
}

TEST(CopiesAfterStepRule, IsSilentOnReshapesOfTheHostsForwardPassAndOnOtherOperators) {
  InsightProgram before = AHostThatReshapes(1 * kMs);
  EXPECT_TRUE(IsSilent(before.run(), "copies-after-step"));
  InsightProgram other = AHostThatReshapes(7 * kMs, "aten::mm");
  EXPECT_TRUE(IsSilent(other.run(), "copies-after-step"));
}

TEST(CopiesAfterStepRule, SaysThatItCannotTellWithoutAnOptimizer) {
  InsightProgram program = AProgramThatCopies(7 * kMs);
  Ranges& ranges = program->trace().ranges;
  for (size_t row = 2; row < ranges.size(); row += 3) ranges.name.Set(row, 0);  // the optimizer
  EXPECT_TRUE(IsUnchecked(program.run(), "copies-after-step"));
}

// Steps of 10 ms, of which the optimizer takes 6 ms: a kernel of 20 us each 100 us.
InsightProgram AProgramThatUpdates(std::string_view name) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddRange(proto::kPhaseDomain, proto::kOptimizerPhase, at + 4 * kMs, at + 10 * kMs);
    program->AddKernel({.launched = at, .start = at + 2 * kUs, .end = at + 4 * kMs});
    for (int64_t i = 0; i < 60; ++i) {
      const int64_t launched = at + 4 * kMs + i * 100 * kUs;
      program->AddKernel(
          {.name = name, .launched = launched, .start = launched, .end = launched + 20 * kUs});
    }
  }
  return program;
}

TEST(UnfusedOptimizerRule, FiresOnAKernelForEachTensor) {
  InsightProgram program =
      AProgramThatUpdates("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add>");
  const Insight found = TheFinding(program.run(), "unfused-optimizer");
  EXPECT_EQ(found.count, 600);
  // 59 gaps of 80 us.
  EXPECT_NEAR(static_cast<double>(found.lost_ns), 59 * 80'000, 1'000);
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 59 * 80'000, 1'000);
  EXPECT_NE(found.finding.find("60 times a step, taking 1.200 ms of each 10.00 ms step"),
            std::string::npos)
      << found.finding;
}

TEST(UnfusedOptimizerRule, IsSilentOnKernelsForManyTensors) {
  InsightProgram program =
      AProgramThatUpdates("void at::native::multi_tensor_apply_kernel<FusedAdamMathFunctor>");
  EXPECT_TRUE(IsSilent(program.run(), "unfused-optimizer"));
}

}  // namespace
}  // namespace ranktap::collector

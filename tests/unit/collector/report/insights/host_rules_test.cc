// Rules about what the host does instead of launching. Each pair of programs differs in one thing.
#include <gtest/gtest.h>

#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

// Steps of 10 ms: a kernel until 4 ms, the next launched at 6 ms; between them the host does
// something for `pause`, from 4 ms on.
template <typename Pause>
InsightProgram AProgramThatPauses(Pause&& pause) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddKernel({.launched = at, .start = at + 2 * kUs, .end = at + 4 * kMs});
    pause(program.rank(), at + 4 * kMs);
    program->AddKernel({.launched = at + 6 * kMs, .start = at + 6 * kMs, .end = at + 10 * kMs});
  }
  return program;
}

InsightProgram AProgramWithPhase(std::string_view phase, int64_t length) {
  return AProgramThatPauses([=](InsightRank& rank, int64_t at) {
    rank.AddRange(proto::kPhaseDomain, phase, at, at + length);
  });
}

InsightProgram AProgramThatCalls(std::string_view api) {
  return AProgramThatPauses(
      [=](InsightRank& rank, int64_t at) { rank.AddCall(api, at, at + 2 * kMs); });
}

TEST(GarbageCollectionRule, FiresOnPausesOfAHundredthOfTheStep) {
  InsightProgram program = AProgramWithPhase(proto::kCollectionPhase, 1 * kMs);
  const Insight found = TheFinding(program.run(), "garbage-collection");
  EXPECT_EQ(found.finding,
            "Python's garbage collection stops the host once a step, for 1.000 ms of each 10.00 ms "
            "step (10.0 %); the longest takes 1.000 ms.");
  EXPECT_EQ(found.saving_ns, 1 * kMs);
}

TEST(GarbageCollectionRule, IsSilentOnShorterOnes) {
  InsightProgram program = AProgramWithPhase(proto::kCollectionPhase, 90 * kUs);
  EXPECT_TRUE(IsSilent(program.run(), "garbage-collection"));
}

TEST(GarbageCollectionRule, SaysThatItCannotTellWithoutHooks) {
  InsightProgram program;
  program->AddKernel({.launched = 0, .start = 0, .end = 4 * kMs});
  EXPECT_TRUE(IsUnchecked(program.run(), "garbage-collection"));
  EXPECT_TRUE(IsUnchecked(program.run(), "checkpoint-stalls"));
}

TEST(CheckpointStallsRule, FiresOnSavesAndNotOnOtherPhases) {
  InsightProgram program = AProgramWithPhase(proto::kCheckpointPhase, 2 * kMs);
  const Insight found = TheFinding(program.run(), "checkpoint-stalls");
  EXPECT_EQ(found.finding,
            "Saving checkpoints stops the host once a step, for 2.000 ms of each 10.00 ms step "
            "(20.0 %); the longest takes 2.000 ms.");
  EXPECT_EQ(found.saving_ns, 2 * kMs);
  InsightProgram other = AProgramWithPhase(proto::kDataPhase, 2 * kMs);
  EXPECT_TRUE(IsSilent(other.run(), "checkpoint-stalls"));
}

TEST(AllocationsInStepsRule, FiresOnCallsThatGoToTheDriver) {
  InsightProgram program = AProgramThatCalls("cudaMalloc");
  const Insight found = TheFinding(program.run(), "allocations-in-steps");
  EXPECT_EQ(found.finding,
            "The host asks the driver for memory or gives it back once a step (10 calls, mostly "
            "cudaMalloc), for 2.000 ms of each 10.00 ms step (20.0 %).");
  EXPECT_EQ(found.saving_ns, 2 * kMs);
}

TEST(AllocationsInStepsRule, IsSilentOnCallsThatAskAPool) {
  InsightProgram program = AProgramThatCalls("cudaMallocAsync");
  EXPECT_TRUE(IsSilent(program.run(), "allocations-in-steps"));
}

TEST(AllocationsInStepsRule, CountsWhatHadToBeTriedAgain) {
  InsightProgram program = AProgramThatCalls("cudaMalloc");
  OptionalColumn<int32_t>& status = program->trace().api_calls.status;
  status.PadTo(2);
  status[1] = 2;  // cudaErrorMemoryAllocation
  const Insight found = TheFinding(program.run(), "allocations-in-steps");
  EXPECT_TRUE(found.finding.ends_with("; 1 failed and had to be tried again.")) << found.finding;
}

TEST(RecompilationRule, FiresOnCodeThatIsLoadedInEachStep) {
  InsightProgram program = AProgramThatCalls("cuModuleLoadData");
  const Insight found = TheFinding(program.run(), "recompilation");
  EXPECT_EQ(found.finding,
            "After the warm-up code is still compiled or loaded once a step, for 2.000 ms of each "
            "10.00 ms step (20.0 %); most of it in cuModuleLoadData.");
  EXPECT_EQ(found.saving_ns, 2 * kMs);
}

TEST(RecompilationRule, IsSilentOnCodeThatIsLookedUp) {
  InsightProgram program = AProgramThatCalls("cuModuleGetFunction");
  EXPECT_TRUE(IsSilent(program.run(), "recompilation"));
}

TEST(RecompilationRule, KnowsTheCompilersOfTorchByTheirLabels) {
  const auto labelled = [](std::string_view label) {
    return AProgramThatPauses([label](InsightRank& rank, int64_t at) {
      rank.AddRange(proto::kLabelDomain, label, at, at + 1 * kMs);
    });
  };
  InsightProgram compiled = labelled("_compile.compile_inner (dynamo_timed)");
  EXPECT_EQ(TheFinding(compiled.run(), "recompilation").saving_ns, 1 * kMs);
  InsightProgram called = labelled("TorchDynamo Cache Lookup");
  EXPECT_TRUE(IsSilent(called.run(), "recompilation"));
}

// In a forward an operator waits for a copy of 8 bytes, until 5 ms.
InsightProgram AProgramThatReads(std::string_view op) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddRange(proto::kModuleDomain, "Net", at, at + 9 * kMs);
    program->AddKernel({.launched = at, .start = at + 2 * kUs, .end = at + 4 * kMs});
    program->AddOperator(op, at + 1 * kMs, at + 5 * kMs, "train.py(31): step;train.py(40): main");
    program->AddCopy({.kind = kDeviceToHost,
                      .from = kOnDevice,
                      .to = kPinned,
                      .bytes = 8,
                      .called = at + 2 * kMs,
                      .returned = at + 2 * kMs + 5 * kUs,
                      .start = at + 4 * kMs,
                      .end = at + 4 * kMs + 2 * kUs});
    program->AddCall("cudaStreamSynchronize", at + 2 * kMs + 6 * kUs, at + 4 * kMs + 10 * kUs);
    program->AddKernel({.launched = at + 6 * kMs, .start = at + 6 * kMs, .end = at + 10 * kMs});
  }
  return program;
}

TEST(HiddenCopiesRule, FiresOnAnOperatorThatMustKnowANumber) {
  InsightProgram program = AProgramThatReads("aten::nonzero");
  const Insight found = TheFinding(program.run(), "hidden-copies");
  EXPECT_EQ(found.where, "aten::nonzero at train.py(31): step");
  EXPECT_EQ(found.finding,
            "In the middle of a pass aten::nonzero at train.py(31): step copies a result to the "
            "host once a step to know how to go on: the host waits 2.004 ms of each 10.00 ms step, "
            "and the device is idle for 1.998 ms afterwards.");
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 1'998'000, 1'000);
}

TEST(HiddenCopiesRule, IsSilentOnACopyThatTheProgramAsksFor) {
  InsightProgram program = AProgramThatReads("aten::to");
  EXPECT_TRUE(IsSilent(program.run(), "hidden-copies"));
}

TEST(ProfilerOverheadRule, FiresWhereHooksTakeMoreThanAFewPercent) {
  const auto costing = [](uint64_t ticks) {
    InsightProgram program = AProgramThatPauses([](InsightRank&, int64_t) {});
    v1::Cost& cost = program->trace().cost;
    cost.set_watched_ns(100 * kMs);
    cost.set_callback_ticks(ticks);
    cost.set_callbacks(1'000);
    program->trace().info.level = "full";
    return program;
  };
  InsightProgram dear = costing(10 * kMs);
  const Insight found = TheFinding(dear.run(), "profiler-overhead");
  EXPECT_EQ(found.finding,
            "ranktap's own hooks take 10.0 % of the time that it watched (1,000 events at level "
            "full).");
  EXPECT_EQ(found.lost_ns, 1 * kMs);
  EXPECT_EQ(found.saving_ns, 1 * kMs);
  InsightProgram cheap = costing(1 * kMs);
  EXPECT_TRUE(IsSilent(cheap.run(), "profiler-overhead"));
  InsightProgram unknown = costing(0);
  EXPECT_TRUE(IsUnchecked(unknown.run(), "profiler-overhead"));
}

}  // namespace
}  // namespace ranktap::collector

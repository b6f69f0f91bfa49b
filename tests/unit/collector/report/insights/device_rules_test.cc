// Rules about idle devices, data loading and streams. Each pair of programs differs in one thing.
#include <gtest/gtest.h>

#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {
namespace {

// 10 steps of 10 ms, each a kernel that is launched after `idle`; fourth of them also after
// `pause`.
InsightProgram StepsWithAGap(int64_t idle, int64_t pause) {
  InsightProgram program;
  int64_t at = 0;
  for (int i = 0; i < 10; ++i) {
    const int64_t begin = at + idle + (i == 3 ? pause : 0);
    program->AddOperator("aten::mm", begin, begin + 10 * kUs, "train.py(7): step");
    program->AddKernel({.launched = begin, .start = begin, .end = begin + 10 * kMs - idle});
    program->AddStep(at, begin + 10 * kMs - idle);
    at = begin + 10 * kMs - idle;
  }
  return program;
}

TEST(GpuGapsRule, NamesTheGapAndWhatRunsNext) {
  InsightProgram program = StepsWithAGap(100 * kUs, 3 * kMs);
  const Insight found = TheFinding(program.run(), "gpu-gaps");
  EXPECT_EQ(found.finding,
            "No device runs anything for 1.030 ms or longer 0.1 times a step, which takes 310.0 us "
            "of each 10.30 ms step (3.0 %); the longest lasts 3.100 ms and begins 30.00 ms into "
            "the trace, before what aten::mm at train.py(7): step launches. Mostly it is an idle "
            "device because the host launches too late (host-bound).");
  EXPECT_EQ(found.saving_ns, 310'000);
}

TEST(GpuGapsRule, IsSilentWhereNoGapIsLong) {
  InsightProgram program = StepsWithAGap(100 * kUs, 0);
  EXPECT_TRUE(IsSilent(program.run(), "gpu-gaps"));
}

TEST(LowUtilizationRule, FiresWhereTheDeviceIsIdleForMoreThanHalfOfTheTime) {
  InsightProgram program = StepsWithAGap(6 * kMs, 0);
  const Insight found = TheFinding(program.run(), "low-utilization");
  EXPECT_EQ(found.device, 0u);
  EXPECT_GE(found.count, 10);
  EXPECT_FALSE(found.saving_ns);
}

TEST(LowUtilizationRule, IsSilentWhereItIsBusy) {
  InsightProgram program = StepsWithAGap(1 * kMs, 0);
  EXPECT_TRUE(IsSilent(program.run(), "low-utilization"));
}

// The host is in the data loader for 2 ms of each 10 ms step, or does something else.
InsightProgram StepsThatLoad(std::string_view range) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddRange(proto::kPhaseDomain, range, at, at + 2 * kMs);
    program->AddKernel({.launched = at + 2 * kMs, .start = at + 2 * kMs, .end = at + 10 * kMs});
  }
  return program;
}

TEST(DataLoadingRule, FiresWhereTheDeviceWaitsForTheLoader) {
  InsightProgram program = StepsThatLoad(proto::kDataPhase);
  const Insight found = TheFinding(program.run(), "data-loading");
  EXPECT_EQ(found.finding,
            "An idle device waits for the data loader for 2.000 ms of each 10.00 ms step (20.0 %), "
            "once a step.");
  // The first step's lies before anything that ran: nothing on the path.
  EXPECT_NEAR(static_cast<double>(found.saving_ns.value()), 2e6, 2e5);
  EXPECT_LE(found.saving_ns.value(), 2 * kMs);
}

// The payload of the phase is 1 and the batches that were ready.
TEST(DataLoadingRule, SaysHowOftenABatchWasReady) {
  for (const uint64_t ready : {0u, 3u}) {
    InsightProgram program = StepsThatLoad(proto::kDataPhase);
    Ranges& ranges = program->trace().ranges;
    for (size_t row = 1; row < ranges.size(); row += 2) ranges.payload[row] = 1 + ready;
    const std::string finding = TheFinding(program.run(), "data-loading").finding;
    EXPECT_TRUE(finding.ends_with(
        ready == 0 ? "once a step. No batch was ready at 10 of 10 requests."
                   : "once a step. A batch was ready at 10 of 10 requests: the time goes into "
                     "taking it."))
        << finding;
  }
}

TEST(DataLoadingRule, IsSilentWhereTheHostDoesSomethingElse) {
  InsightProgram program = StepsThatLoad("something else");
  EXPECT_TRUE(IsSilent(program.run(), "data-loading"));
}

TEST(DataLoadingRule, SaysThatItCannotTellWithoutRangesAndOperators) {
  InsightProgram program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddKernel({.launched = at + 2 * kMs, .start = at + 2 * kMs, .end = at + 10 * kMs});
  }
  EXPECT_TRUE(IsUnchecked(program.run(), "data-loading"));
}

// Stream 13 has a kernel ready at once; it begins when the default stream's is done.
InsightProgram TwoStreams(uint32_t flags, uint32_t device = 0) {
  constexpr uint32_t kDefault = 7, kOther = 13;
  InsightProgram program;
  program->trace().contexts.push_back({.context = 1, .null_stream = kDefault});
  program->trace().contexts.push_back({.context = 2, .device = 1, .null_stream = kDefault});
  program->trace().streams.push_back({.context = 1 + device, .stream = kOther, .flags = flags});
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddKernel({.launched = at, .start = at, .end = at + 6 * kMs, .stream = kDefault});
    program->AddKernel({.launched = at + 1 * kMs,
                        .start = at + 6 * kMs + 1 * kUs,
                        .end = at + 10 * kMs,
                        .stream = kOther,
                        .device = device});
  }
  return program;
}

TEST(DefaultStreamRule, FiresWhereABlockingStreamStandsBehindTheDefaultOne) {
  InsightProgram program = TwoStreams(1);
  const Insight found = TheFinding(program.run(), "default-stream");
  EXPECT_EQ(found.lost_ns, 5 * kMs);
  EXPECT_EQ(found.finding,
            "Launched work stands once a step, 5.000 ms of each 10.00 ms step, although its own "
            "stream is free, until the default stream or one that blocks with it is done; most of "
            "it on stream 13.");
}

TEST(DefaultStreamRule, IsSilentWhereTheStreamIsNonBlocking) {
  InsightProgram program = TwoStreams(2);
  EXPECT_TRUE(IsSilent(program.run(), "default-stream"));
}

TEST(DefaultStreamRule, IsSilentAboutTheDefaultStreamOfAnotherDevice) {
  InsightProgram program = TwoStreams(1, 1);
  EXPECT_TRUE(IsSilent(program.run(), "default-stream"));
}

TEST(DefaultStreamRule, SaysThatItCannotTellWithoutTheKindsOfStreams) {
  InsightProgram program = TwoStreams(1);
  program->trace().streams.clear();
  EXPECT_TRUE(IsUnchecked(program.run(), "default-stream"));
}

}  // namespace
}  // namespace ranktap::collector

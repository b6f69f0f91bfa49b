// Jobs whose step after a change is known in closed form.
#include "collector/facts/replay/predict.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "proto/sample_marks.h"
#include "tests/unit/collector/report/steps/planted_program.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

using Kind = Change::Kind;

int64_t Gain(const Run& run, const Change& change) {
  const Result<Identity> identity = CheckIdentity(run);
  EXPECT_TRUE(identity) << identity.message();
  EXPECT_EQ(identity->broken, "");
  const Result<Prediction> prediction = Predict(run, {change});
  EXPECT_TRUE(prediction) << prediction.message();
  if (!prediction) return -1;
  EXPECT_LE(prediction->low, prediction->step);
  EXPECT_GE(prediction->high, prediction->step);
  return prediction->before - prediction->step;
}

std::string WhyNot(const Run& run, const Change& change) {
  const Result<Prediction> prediction = Predict(run, {change});
  EXPECT_FALSE(prediction);
  return prediction ? "" : prediction.message();
}

// Closed forms of SyntheticJob: of each step on the device and between ranks.
TEST(WhatIf, OfAJobOnDevicesEachChangeGainsWhatItTakesAway) {
  for (uint32_t ranks = 1; ranks <= 4; ++ranks) {
    SCOPED_TRACE(ranks);
    SyntheticJob job({.ranks = ranks, .layers = 3, .steps = 12});
    const collector::Run& run = job.run();
    EXPECT_NEAR(Gain(run, {Kind::kKernel, "gemm", 0.5}), 3 * 100'000, 1'000);
    EXPECT_NEAR(Gain(run, {Kind::kComm, "", 0}), 3 * 80'000, 1'000);
    EXPECT_NEAR(Gain(run, {Kind::kData, "", 0}), 50'000, 1'000);
    EXPECT_NEAR(Gain(run, {Kind::kKernel, "nccl*", 0}), 3 * 80'000, 1'000);
  }
}

TEST(WhatIf, ALateRankAsTheOthersGainsItsLatenessAndAnotherRankNothing) {
  for (const Cause cause : {Cause::kHost, Cause::kDataLoading, Cause::kCompute, Cause::kMemory}) {
    SCOPED_TRACE(NameOf(cause));
    SyntheticJob job({.steps = 12, .late = {{.rank = 2, .cause = cause, .ns = 150'000}}});
    EXPECT_NEAR(Gain(job.run(), {Kind::kRank, "2", 0}), 150'000, 3'000);
    EXPECT_NEAR(Gain(job.run(), {Kind::kRank, "1", 0}), 0, 3'000);
  }
}

TEST(WhatIf, ChangesCompose) {
  SyntheticJob job({.ranks = 2, .layers = 2, .steps = 12});
  const Result<Prediction> both =
      Predict(job.run(), {{Kind::kKernel, "gemm", 0.5}, {Kind::kComm, "", 0}});
  ASSERT_TRUE(both);
  EXPECT_NEAR(both->before - both->step, 2 * 100'000 + 2 * 80'000, 1'000);
}

TEST(WhatIf, ThenCriticalIsWhatTheLateRankWaitsFor) {
  SyntheticJob job({.steps = 12, .late = {{.rank = 2, .cause = Cause::kCompute, .ns = 900'000}}});
  const Result<Prediction> prediction = Predict(job.run(), {{Kind::kData, "", 0}});
  ASSERT_TRUE(prediction);
  ASSERT_FALSE(prediction->critical.empty());
  EXPECT_EQ(prediction->critical[0].what, "gemm");
  EXPECT_EQ(prediction->critical[0].trace, 2u);
}

// Steps of 40 ms on a host: data, a forward with two modules, backward, optimizer, and 5 ms of the
// program's own.
Run HostSteps() {
  Program program;
  program.trace().info.rank = 0;
  for (int i = 0; i < 12; ++i) {
    const int64_t at = (100 + i * 40) * kMs;
    program.AddStep(at, at + 40 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kDataPhase, at, at + 4 * kMs);
    const int64_t forward = at + 4 * kMs;
    program.AddRange(proto::kModuleDomain, "Net", forward, forward + 10 * kMs);
    program.AddRange(proto::kModuleDomain, "Net.wide", forward, forward + 6 * kMs);
    program.trace().ranges.depth.back() = 1;
    program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, at + 14 * kMs, at + 30 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kOptimizerPhase, at + 30 * kMs, at + 35 * kMs);
  }
  return std::move(program.run());
}

TEST(WhatIf, OnAHostAModuleTakesItsPartOfBothPasses) {
  const collector::Run run = HostSteps();
  // 6 of 10 ms of the forward pass, and, without operators, the same part of the backward pass.
  EXPECT_NEAR(Gain(run, {Kind::kModule, "wide", 0.5}), 3 * kMs + 16 * kMs * 6 / 10 / 2, 10'000);
  EXPECT_NEAR(Gain(run, {Kind::kModule, "Net", 0}), 26 * kMs, 10'000);
  EXPECT_NEAR(Gain(run, {Kind::kData, "", 0}), 4 * kMs, 10'000);
  EXPECT_NEAR(Gain(run, {Kind::kData, "", 0.5}), 2 * kMs, 10'000);
  EXPECT_NEAR(Gain(run, {Kind::kHost, "", 0.5}), 20 * kMs, 10'000);
}

// Two hosts whose all-reduce of 2 ms begins when rank 1 comes, `late` after rank 0.
Run TwoHosts(int64_t late) {
  collector::Run run;
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Program program;
    Trace& trace = program.trace();
    trace.info.rank = rank;
    trace.info.world_size = 2;
    for (int i = 0; i < 12; ++i) {
      const int64_t at = 100 * kMs + i * (22 * kMs + late);
      const int64_t there = at + 20 * kMs + late;
      const int64_t comes = rank == 0 ? at + 20 * kMs : there;
      program.AddStep(at, there + 2 * kMs);
      program.AddRange(proto::kCommDomain, "gloo:all_reduce", comes, there + 2 * kMs);
      trace.ranges.category.PadTo(trace.ranges.size());
      trace.ranges.category.back() = 2;
    }
    run.traces.push_back(std::move(trace));
  }
  return run;
}

TEST(WhatIf, ACollectiveOfHostsBeginsWhenTheLastHasCome) {
  const collector::Run run = TwoHosts(8 * kMs);
  EXPECT_NEAR(Gain(run, {Kind::kComm, "", 0}), 2 * kMs, 10'000);
  EXPECT_NEAR(Gain(run, {Kind::kRank, "1", 0}), 8 * kMs, 10'000);
  EXPECT_NEAR(Gain(run, {Kind::kRank, "0", 0}), 0, 10'000);
  EXPECT_NEAR(Gain(run, {Kind::kHost, "", 0.5}), 14 * kMs, 10'000);
}

// Steps whose last 10 ms are train.py:98; before it train.py:97 runs for 30 ms. The first
// `disturbed` take 25 ms more, in which no CPU ran the thread.
collector::Run SampledSteps(int disturbed, int steps = 24) {
  Program program;
  program.trace().hello.mutable_process()->set_pid(40);
  program.AddMark(proto::kSampleDomain, proto::kSampledCodesMark, 1,
                  "[1,\"/job/train.py\",\"main\"]\n");
  program.AddMark(proto::kSampleDomain, proto::kSampledFramesMark, 1, "[1,0,1,97]\n[4,0,1,98]\n");
  int64_t at = 100 * kMs;
  for (int i = 0; i < steps; ++i) {
    const int64_t queued = i < disturbed ? 25 * kMs : 0;
    const int64_t until = at + 30 * kMs + queued;
    program.AddStep(at, until + 10 * kMs);
    program.trace().ranges.payload.back() = static_cast<uint64_t>(i);
    program.AddMark(proto::kSampleDomain, proto::kSamplesMark, at,
                    fmt::format("[40,1,1,3,{},{},{},{},0,0]\n[40,4,2,1,{},{},0,0,0,0]\n", at, until,
                                30 * kMs, queued, until, until + 10 * kMs));
    at = until + 10 * kMs;
  }
  return std::move(program.run());
}

TEST(WhatIf, ALineHasThePartOfItsPlaceThatSamplesSaw) {
  const collector::Run run = SampledSteps(0);
  EXPECT_NEAR(Gain(run, {Kind::kLine, "train.py:98", 0}), 10 * kMs, kMs / 10);
  EXPECT_NEAR(Gain(run, {Kind::kLine, "job/train.py:97", 0.5}), 15 * kMs, kMs / 10);
  EXPECT_EQ(WhyNot(run, {Kind::kLine, "train.py:5", 0}),
            "no sample within a step is on train.py:5: the nearest line that has some is 97");
  EXPECT_EQ(WhyNot(run, {Kind::kLine, "train.py:100", 0}),
            "no sample within a step is on train.py:100: the nearest line that has some is 98");
  EXPECT_EQ(WhyNot(run, {Kind::kLine, "rain.py:98", 0}),
            "nobody saw the file of rain.py:98 within a step: report RUN host names lines");
}

TEST(WhatIf, StepsInWhichSomethingElseHadTheCpuAreLeftOutWhereEnoughOthersAre) {
  const collector::Run run = SampledSteps(10);
  EXPECT_EQ(CheckIdentity(run)->disturbed, 10u);
  EXPECT_EQ(Predict(run, {})->before, 40 * kMs);
  const collector::Run busy = SampledSteps(20);
  EXPECT_EQ(CheckIdentity(busy)->disturbed, 0u);
  EXPECT_EQ(Predict(busy, {})->before, 65 * kMs);
  // 12 of 60 are left: what takes the CPU is part of this run.
  const collector::Run always_busy = SampledSteps(48, 60);
  EXPECT_EQ(CheckIdentity(always_busy)->disturbed, 0u);
  EXPECT_EQ(Predict(always_busy, {})->before, 65 * kMs);
}

// One worker makes a batch in 30 ms, and the loop takes 10 ms of its own.
TEST(WhatIf, TwoWorkersMakeTwoBatchesAtATime) {
  Program program;
  program.AddOperator("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", 1, 2);
  for (int i = 0; i < 25; ++i) {
    const int64_t at = (100 + i * 30) * kMs;
    program.AddStep(at, at + 30 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kDataPhase, at, at + 20 * kMs);
  }
  const collector::Run run = std::move(program.run());
  EXPECT_NEAR(Gain(run, {Kind::kData, "", 0.5}), 15 * kMs, 10'000);
  EXPECT_NEAR(Gain(run, {Kind::kData, "", 0}), 20 * kMs, 10'000);
  // Batches come in pairs: every other step is the loop's own 10 ms, and the others have 20.
  const int64_t gain = Gain(run, {Kind::kWorkers, "", 2});
  EXPECT_TRUE(gain >= 10 * kMs - 10'000 && gain <= 20 * kMs + 10'000) << gain;
  EXPECT_NEAR(Gain(run, {Kind::kWorkers, "", 4}), 20 * kMs, 10'000);
  EXPECT_EQ(Gain(run, {Kind::kWorkers, "", 1}), 0);
  // The loader binds: a faster host gains nothing.
  EXPECT_NEAR(Gain(run, {Kind::kHost, "", 0.5}), 0, 10'000);
}

TEST(WhatIf, WhatTheRunDoesNotHaveIsNamed) {
  const collector::Run host = HostSteps();
  EXPECT_EQ(WhyNot(host, {Kind::kKernel, "gemm", 0.5}),
            "no rank used a device, so that it has no kernels");
  EXPECT_EQ(WhyNot(host, {Kind::kModule, "nope", 0}),
            "no module is called 'nope': report RUN modules names them");
  EXPECT_EQ(WhyNot(host, {Kind::kRank, "7", 0}), "the run has no rank 7");
  EXPECT_EQ(WhyNot(host, {Kind::kRank, "0", 0}), "the run has no other rank to compare with");
  EXPECT_EQ(WhyNot(host, {Kind::kComm, "", 0}), "the run has no collectives");
  EXPECT_EQ(WhyNot(host, {Kind::kLine, "train.py:3", 0}),
            "nobody looked at the program's lines: run --sample 10ms does");
  EXPECT_EQ(WhyNot(host, {Kind::kLine, "train", 0}),
            "'train' is no line: --line FILE:LINE, as train.py:93");
  SyntheticJob job({.steps = 12});
  EXPECT_EQ(WhyNot(job.run(), {Kind::kKernel, "nope*", 0}),
            "no kernel matches 'nope*': report RUN kernels names them");
}

TEST(WhatIf, ARunWithoutStepsIsRefused) {
  collector::Run run;
  run.traces.emplace_back();
  const Result<Identity> identity = CheckIdentity(run);
  ASSERT_FALSE(identity);
  EXPECT_EQ(identity.message(), "the run has no steps after its warm-up");
}

// Each launch takes 10 us of the host, which then waits until the kernel 1,024 before has begun.
// Kernels take 100 us, 200 of them in a step.
TEST(WhatIf, ALaunchThatFoundTheQueueFullReturnsEarlierWhereKernelsAreShorter) {
  constexpr int kQueue = 1'024, kEarlier = 1'200, kOfStep = 200, kSteps = 12;
  constexpr int64_t kKernel = 100'000, kLaunch = 10'000;
  Program program;
  const auto ends = [](int kernel) { return 20 * kMs + (kernel + 1) * kKernel; };
  int64_t host = kMs, begin = 0;
  for (int i = 0; i < kEarlier + kSteps * kOfStep; ++i) {
    if (i >= kEarlier && (i - kEarlier) % kOfStep == 0) {
      if (i > kEarlier) program.AddStep(begin, host);
      begin = host;
    }
    program.AddKernel(host, ends(i) - kKernel, ends(i));
    int64_t returned = host + 1'000;
    if (i > kQueue) returned = std::max(returned, ends(i - kQueue - 1) + 1'000);
    TimeColumn& end = program.trace().api_calls.end;
    end.Set(end.size() - 1, returned);
    host = returned + kLaunch;
  }
  program.AddStep(begin, host);
  const collector::Run run = std::move(program.run());
  EXPECT_NEAR(Gain(run, {Kind::kKernel, "gemm", 0.5}), kOfStep * kKernel / 2, kMs / 10);
  // The device binds: a faster host gains nothing.
  EXPECT_NEAR(Gain(run, {Kind::kHost, "", 0.5}), 0, kMs / 10);
  // Now the host does, with what it takes of its own and the call's way back.
  EXPECT_NEAR(Gain(run, {Kind::kKernel, "gemm", 0}), kOfStep * (kKernel - kLaunch - 1'000),
              kMs / 2);
}

// Work on a second stream that begins for no reason in the trace: the device stands idle meanwhile.
TEST(WhatIf, IdleTimeThatOnlyAKeptGapExplainsIsRefused) {
  Program program;
  for (int i = 0; i < 12; ++i) {
    const int64_t at = (100 + i * 10) * kMs;
    program.AddStep(at, at + 10 * kMs);
    program.AddKernel(at, at + 4 * kMs * (i % 2) + 10'000, at + 4 * kMs * (i % 2) + kMs);
  }
  const Result<Identity> identity = CheckIdentity(program.run());
  ASSERT_TRUE(identity);
  EXPECT_NE(identity->broken.find("has no edge that explains it"), std::string::npos)
      << identity->broken;
}

}  // namespace
}  // namespace ranktap::collector

// Two ways to one number: where they do not meet, there is no verdict.
#include "collector/report/steps/trusted_time.h"

#include <gtest/gtest.h>

#include "collector/facts/causes/waterfall.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/report/steps/planted_program.h"

namespace ranktap::collector {
namespace {

Program Usual() {
  Program program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    program.AddKernel(at, at + kMs, at + 9 * kMs);
  }
  return program;
}

TEST(TrustedTime, AUsualLoopAgrees) {
  Program program = Usual();
  EXPECT_EQ(WhatDisagrees(program.run(), ComputeWaterfalls(program.run())), "");
}

TEST(TrustedTime, PartsThatDoNotAddUpToTheirStepGetNoVerdict) {
  Program program = Usual();
  std::vector<RankWaterfall> waterfalls = ComputeWaterfalls(program.run());
  waterfalls[0].times[4][static_cast<size_t>(Cause::kHost)] -= kMs;
  EXPECT_NE(WhatDisagrees(program.run(), waterfalls).find("add up to 9.000 ms of its 10.00 ms"),
            std::string::npos);
}

TEST(TrustedTime, ComputeThatTemporalDoesNotSeeGetsNoVerdict) {
  Program program = Usual();
  std::vector<RankWaterfall> waterfalls = ComputeWaterfalls(program.run());
  for (CauseTimes& times : waterfalls[0].times) {
    times[static_cast<size_t>(Cause::kHost)] -= kMs;
    times[static_cast<size_t>(Cause::kCompute)] += kMs;
  }
  EXPECT_NE(WhatDisagrees(program.run(), waterfalls)
                .find("waterfall sees 90.0 % of its steps compute, temporal 80.0 %"),
            std::string::npos);
}

// The host launches each step's work and then an evaluation's, and waits for neither: the
// evaluation runs where the next step's work should.
TEST(TrustedTime, WorkOfOthersInTheStepsGetsNoVerdict) {
  Program program;
  for (int64_t i = 0; i < 10; ++i) {
    program.AddStep(i * 2 * kMs, i * 2 * kMs + kMs);
    program.AddKernel(i * 2 * kMs, i * 10 * kMs, i * 10 * kMs + 5 * kMs);
    program.AddKernel(i * 2 * kMs + kMs, i * 10 * kMs + 5 * kMs, i * 10 * kMs + 10 * kMs);
  }
  const Verdict verdict = Judge(program.run());
  EXPECT_TRUE(verdict.refused);
  EXPECT_NE(verdict.sentence.find("compute in its steps, and they launched 50.00 ms"),
            std::string::npos)
      << verdict.sentence;
}

// Steps are the host's, 2 ms each; the device takes 10 ms for each, and no launch is recorded.
TEST(TrustedTime, ADeviceThatRepeatsItselfOutsideTheStepsGetsNoVerdict) {
  Program program;
  for (int64_t i = 0; i < 10; ++i) {
    program.AddStep(i * 2 * kMs, (i + 1) * 2 * kMs);
    for (int64_t k = 0; k < 4; ++k) {
      const int64_t at = i * 10 * kMs + k * 2 * kMs;
      program.AddKernel(at, at, at + 2 * kMs);
    }
  }
  program.trace().origin = TraceOrigin::kKineto;
  Kernels& kernels = program.trace().kernels;
  program.trace().dictionary.AppendString("layernorm");
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    kernels.launch[i] = kNone;
    if (i % 4 == 0) kernels.name.Set(i, 3);
  }
  const Verdict verdict = Judge(program.run());
  EXPECT_TRUE(verdict.refused);
  EXPECT_NE(verdict.sentence.find("the device's work repeats 10 times, 2 of them in the 10 steps"),
            std::string::npos)
      << verdict.sentence;
}

}  // namespace
}  // namespace ranktap::collector

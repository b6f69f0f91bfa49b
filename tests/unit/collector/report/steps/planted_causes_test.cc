// Each usual cause of lost time, planted: the first sentence names it with its amount.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "collector/facts/causes/stragglers.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/device_steps.h"
#include "collector/report/insights/find_insights.h"
#include "collector/report/steps/verdict.h"
#include "proto/sample_marks.h"
#include "tests/unit/collector/report/steps/planted_program.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

bool Says(const Verdict& verdict, const std::string& text) {
  if (verdict.sentence.find(text) != std::string::npos) return true;
  ADD_FAILURE() << verdict.sentence;
  return false;
}

// The agent's phase covers the program's own generator as it does a DataLoader.
TEST(PlantedCause, ASlowGeneratorKeepsTheDeviceIdle) {
  Program program;
  for (int64_t at = 0; at < 10 * 20 * kMs; at += 20 * kMs) {
    program.AddStep(at, at + 20 * kMs);
    program.AddRange(proto::kPhaseDomain, proto::kDataPhase, at, at + 15 * kMs);
    program.AddKernel(at + 15 * kMs, at + 15 * kMs, at + 20 * kMs);
  }
  EXPECT_TRUE(Says(Judge(program.run()),
                   "The largest loss is 15.00 ms of each 20.00 ms step (75.0 %): an idle device "
                   "while the host loads data."));
}

// While the device is idle the host is past the line that waited for it, at train.py:9.
TEST(PlantedCause, AWaitForTheDeviceIsNamedWithTheLineThatWaited) {
  constexpr int64_t kStep = 40 * kMs;
  Program program;
  program.trace().hello.mutable_process()->set_pid(40);
  const auto mark = [&program](std::string_view name, int64_t at, const std::string& lines) {
    program.AddMark(proto::kSampleDomain, name, at, lines);
  };
  mark(proto::kSampledCodesMark, 0, "[1,\"/job/train.py\",\"main\"]\n");
  mark(proto::kSampledFramesMark, 0, "[1,0,1,7]\n[2,0,1,9]\n");
  for (int64_t at = 0; at < 10 * kStep; at += kStep) {
    program.AddStep(at, at + kStep);
    program.AddKernel(at, at, at + 20 * kMs);
    program.AddCall("cudaStreamSynchronize", at + kMs, at + 20 * kMs);
    mark(proto::kSamplesMark, at,
         fmt::format("[40,1,2,5,{},{},0]\n[40,2,1,5,{},{},{}]\n", at, at + 20 * kMs, at + 20 * kMs,
                     at + kStep, 20 * kMs));
  }
  EXPECT_TRUE(Says(Judge(program.run()), ", at train.py:7 (main)"));
  const Insights insights = FindInsights(program.run(), AllInsightRules());
  const auto found = std::ranges::find(insights.list, "explicit-syncs", &Insight::rule);
  ASSERT_NE(found, insights.list.end());
  EXPECT_EQ(found->where, "train.py:7 (main)");
}

TEST(PlantedCause, OneRankThatLoadsDataIsWhatTheOthersWaitFor) {
  SyntheticJob job({.ranks = 4,
                    .layers = 1,
                    .late = {{.rank = 3, .cause = Cause::kDataLoading, .ns = 900'000}}});
  const Verdict verdict = Judge(job.run());
  EXPECT_TRUE(Says(verdict,
                   "the other ranks wait for rank 3, which spends 900.0 us a step more "
                   "than they do waiting for data"));
  EXPECT_EQ(verdict.losses[0].cause, Cause::kWait);
  EXPECT_EQ(verdict.losses[0].ns, 900'000) << "what each of the others waits";
}

TEST(PlantedCause, OfTwoRanksThatTakeTurnsEachCostsItsHalf) {
  JobShape shape{.ranks = 4, .layers = 1, .steps = 20};
  for (int step = 0; step < 20; ++step) {
    shape.late.push_back({.rank = step % 2 == 0 ? 1u : 2u,
                          .cause = Cause::kHost,
                          .ns = 400'000,
                          .first_step = step,
                          .last_step = step});
  }
  SyntheticJob job(shape);
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(job.run());
  const std::vector<Straggler> found =
      FindStragglers(job.run(), MatchCollectives(job.run()), waterfalls);
  ASSERT_GE(found.size(), 2u);
  EXPECT_EQ(std::set({found[0].trace, found[1].trace}), (std::set<uint32_t>{1, 2}));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(found[i].steps_late, 10u);
    EXPECT_EQ(found[i].caused_wait_ns, 200'000);
  }
}

// Four micro-batches, and as many optimizers: the program's step is one.
TEST(PlantedCause, AccumulationAndSeveralOptimizersAreOneStep) {
  Program program;
  for (int64_t at = 0; at < 6 * 40 * kMs; at += 40 * kMs) {
    program.AddStep(at, at + 40 * kMs);
    for (int64_t i = 0; i < 4; ++i) {
      const int64_t begin = at + i * 10 * kMs;
      program.AddRange(proto::kModuleDomain, "Net", begin, begin + 3 * kMs);
      program.AddRange(proto::kPhaseDomain, proto::kBackwardPhase, begin + 3 * kMs,
                       begin + 9 * kMs);
      program.AddRange(proto::kPhaseDomain, proto::kOptimizerPhase, begin + 9 * kMs,
                       begin + 10 * kMs);
    }
  }
  EXPECT_EQ(Judge(program.run()).sentence,
            "Without a device all of each 40.00 ms step is the host's time: 24.00 ms "
            "(60.0 %) in the backward pass, 12.00 ms (30.0 %) in the forward pass, 4.000 ms "
            "(10.0 %) in the optimizer.");
}

TEST(PlantedCause, EvaluationBetweenEpochsIsNoPartOfAStep) {
  Program program;
  for (int64_t i = 0; i < 10; ++i) {
    const int64_t at = i * 10 * kMs + (i / 5) * 500 * kMs;  // after each five steps
    program.AddStep(at, at + 10 * kMs);
    program.AddKernel(at, at, at + 9 * kMs);
    if (i == 4) {
      for (int64_t k = 1; k < 490; ++k) {
        program.AddKernel(at + 10 * kMs + k * kMs, at + 10 * kMs + k * kMs,
                          at + 10 * kMs + k * kMs + 100'000);
      }
    }
  }
  const Verdict verdict = Judge(program.run());
  EXPECT_EQ(verdict.mean_step, 10 * kMs);
  EXPECT_TRUE(Says(verdict, "The largest loss is 1.000 ms of each 10.00 ms step (10.0 %)"));
}

TEST(PlantedCause, ACheckpointInSomeStepsIsDividedByAll) {
  Program program;
  for (int64_t i = 0, at = 0; i < 10; ++i) {
    const int64_t saves = i % 5 == 4 ? 8 * kMs : 0;
    program.AddStep(at, at + 10 * kMs + saves);
    if (saves > 0) {
      program.AddRange(proto::kPhaseDomain, proto::kCheckpointPhase, at, at + saves);
    }
    program.AddKernel(at + saves, at + saves, at + saves + 10 * kMs);
    at += 10 * kMs + saves;
  }
  EXPECT_TRUE(Says(Judge(program.run()),
                   "The largest loss is 1.600 ms of each 11.60 ms step (13.8 %): an idle device "
                   "while the host saves a checkpoint."));
}

TEST(PlantedCause, ALongFirstStepIsLeftOut) {
  Program program;
  for (int64_t i = 0, at = 0; i < 10; ++i) {
    const int64_t compiles = i == 0 ? 900 * kMs : 2 * kMs;
    program.AddStep(at, at + compiles + 8 * kMs);
    program.AddKernel(at + compiles, at + compiles, at + compiles + 8 * kMs);
    at += compiles + 8 * kMs;
  }
  EXPECT_TRUE(Says(Judge(program.run()), "The largest loss is 2.000 ms of each 10.00 ms step"));
}

// As run to run: nothing that is said hangs on which rank was read first.
TEST(PlantedCause, TheSameRunGetsTheSameVerdictInWhateverOrder) {
  const JobShape shape{.ranks = 5,
                       .layers = 2,
                       .seed = 7,
                       .steps = 12,
                       .jitter_ns = 30'000,
                       .late = {{.rank = 4, .cause = Cause::kHost, .ns = 300'000}}};
  SyntheticJob job(shape), again(shape), reversed(shape);
  std::reverse(reversed.run().traces.begin(), reversed.run().traces.end());
  const Verdict verdict = Judge(job.run());
  EXPECT_EQ(Judge(again.run()).sentence, verdict.sentence);
  const Verdict other = Judge(reversed.run());
  EXPECT_EQ(other.sentence, verdict.sentence);
  ASSERT_EQ(other.losses.size(), verdict.losses.size());
  for (size_t i = 0; i < other.losses.size(); ++i) {
    EXPECT_EQ(other.losses[i].cause, verdict.losses[i].cause);
    EXPECT_EQ(other.losses[i].ns, verdict.losses[i].ns);
    EXPECT_EQ(other.losses[i].recoverable_ns, verdict.losses[i].recoverable_ns);
    EXPECT_EQ(other.losses[i].finding, verdict.losses[i].finding);
  }
}

}  // namespace
}  // namespace ranktap::collector

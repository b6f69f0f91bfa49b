// What is lost, and what of it can be won back: two numbers.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/report/steps/recoverable.h"
#include "collector/report/steps/verdict.h"
#include "tests/unit/collector/report/steps/planted_program.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

const Loss& LossOf(const Verdict& verdict, Cause cause) {
  for (const Loss& loss : verdict.losses) {
    if (loss.cause == cause) return loss;
  }
  static const Loss none;
  ADD_FAILURE() << "no loss by " << NameOf(cause);
  return none;
}

// A launched kernel stands 6 ms for what nobody sees; the host meanwhile works on, for 9 ms, on
// what the step ends with.
TEST(Recoverable, IsOnlyWhatTheCriticalPathBears) {
  Program program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    program.AddKernel(at, at + 6 * kMs, at + 7 * kMs);
    program.AddKernel(at + 9 * kMs, at + 9 * kMs, at + 10 * kMs);
  }
  const Verdict verdict = Judge(program.run());
  EXPECT_EQ(verdict.losses[0].cause, Cause::kDependency);
  EXPECT_EQ(verdict.losses[0].ns, 6 * kMs);
  EXPECT_EQ(verdict.losses[0].recoverable_ns, 0);
  EXPECT_EQ(LossOf(verdict, Cause::kHost).recoverable_ns, 2 * kMs);
  EXPECT_NE(verdict.sentence.find("is undecided: the file does not show what the launched work "
                                  "waits for, and the critical path is 99.0 % host. Known to be "
                                  "recoverable is at most 2.000 ms (20.0 %), of this: an idle "
                                  "device because the host launches too late (host-bound)."),
            std::string::npos)
      << verdict.sentence;
}

TEST(Recoverable, OfWaitingIsWhatTheLateRankDoesLonger) {
  SyntheticJob job(
      {.ranks = 4, .layers = 1, .late = {{.rank = 2, .cause = Cause::kHost, .ns = 400'000}}});
  const Verdict verdict = Judge(job.run());
  const Loss& wait = LossOf(verdict, Cause::kWait);
  EXPECT_TRUE(wait.blames);
  EXPECT_GT(wait.recoverable_ns, 250'000);
  EXPECT_LE(wait.recoverable_ns, 400'000);
  EXPECT_LE(wait.recoverable_ns, wait.ns);
}

TEST(Recoverable, WhereAllOfItIsOneNumberIsSaid) {
  Program program;
  for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
    program.AddStep(at, at + 10 * kMs);
    program.AddKernel(at + 6 * kMs, at + 6 * kMs, at + 10 * kMs);
  }
  const Verdict verdict = Judge(program.run());
  EXPECT_EQ(verdict.losses[0].recoverable_ns, verdict.losses[0].ns);
  EXPECT_EQ(verdict.sentence.find("recoverable"), std::string::npos) << verdict.sentence;
}

TEST(Recoverable, IsAsLongAsItsMoments) {
  SyntheticJob job({.ranks = 3,
                    .layers = 2,
                    .jitter_ns = 30'000,
                    .late = {{.rank = 1, .cause = Cause::kHost, .ns = 200'000}}});
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(job.run());
  const std::vector<CauseTimes> borne = BorneByCriticalPath(job.run(), waterfalls);
  int64_t all = 0;
  for (size_t t = 0; t < borne.size(); ++t) {
    for (size_t c = 0; c < kCauses; ++c) {
      const std::vector<Interval>& moments = MomentsOnCriticalPath(job.run())[t][c];
      EXPECT_TRUE(std::ranges::is_sorted(moments));
      EXPECT_EQ(borne[t][c], Length(moments) / static_cast<int64_t>(waterfalls[t].counted)) << t;
      all += borne[t][c];
    }
  }
  EXPECT_GT(all, 0);
}

}  // namespace
}  // namespace ranktap::collector

// The own-cost ledger, and the level that a rank gives up when its hooks take too much.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>

#include "collector/report/reports.h"
#include "tests/integration/control/live_run.h"

namespace ranktap::control_test {
namespace {

using collector::Gap;
using collector::Trace;
using ::testing::Contains;
using ::testing::HasSubstr;

// Kernels that take no time: the program does nothing but launch. Millions of them need no truth.
const Environment kLaunchBound = {{"RANKTAP_STANDIN_KERNEL_NS", "50"},
                                  {"RANKTAP_STANDIN_LAUNCH_LATENCY_NS", "100"},
                                  {"RANKTAP_STANDIN_TRUTH", ""}};

std::vector<Gap> BudgetGaps(const Trace& trace) {
  std::vector<Gap> gaps;
  for (const Gap& gap : trace.gaps) {
    if (gap.reason == v1::Gap::REASON_BUDGET) gaps.push_back(gap);
  }
  std::sort(gaps.begin(), gaps.end(), [](const Gap& a, const Gap& b) { return a.start < b.start; });
  return gaps;
}

// A hook takes some 40 ns, a launch of the stand-in about a microsecond: percents, where a
// hundredth of one is allowed. The launches are few enough for the rings.
TEST(BudgetTest, ALaunchBoundRankGivesUpItsLevelsOneByOneAndSaysSo) {
  LiveRun job(1, 5000, {"--level", "full", "--stacks", "launch", "--budget", "0.001%"},
              kLaunchBound);
  ASSERT_TRUE(job.AwaitLevel("ranges"));
  const auto rows = job.Status();
  EXPECT_EQ(rows.at(0)["steps_down"], 2);
  job.End();

  ASSERT_EQ(job.run().traces.size(), 1u);
  const Trace& trace = job.run().traces[0];
  const auto gaps = BudgetGaps(trace);
  ASSERT_EQ(gaps.size(), 2u);
  EXPECT_EQ(gaps[0].source, "full");
  EXPECT_THAT(gaps[0].detail, HasSubstr("% are allowed: level full became kernels"));
  EXPECT_EQ(gaps[1].source, "cupti");
  EXPECT_THAT(trace.info.notes, Contains(HasSubstr("level kernels became ranges")));
  EXPECT_EQ(trace.cost.steps_down(), 2u);
  EXPECT_EQ(trace.cost.budget_ppm(), 10u);
  EXPECT_GT(trace.kernels.size(), 0u);
  const int64_t given_up = gaps[1].start;
  for (const int64_t start : trace.api_calls.start) EXPECT_LE(start, given_up + 1'000'000);

  const collector::Table table = collector::TabulateCost(job.run());
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_THAT(table.notes, Contains(HasSubstr("rank 0 after ")));
  const auto sums = agent_test::SumWriters(trace);
  EXPECT_EQ(sums.produced, sums.stored + sums.lost);
}

TEST(BudgetTest, ARankThatKeepsToItsBudgetKeepsItsLevel) {
  LiveRun job(1, 200, {"--budget", "60%"}, kLaunchBound);
  // Long enough for a decision: several costs have been told.
  ASSERT_TRUE(WaitUntil([&] {
    const auto rows = job.Status();
    return rows.contains(0) && rows.at(0)["events"] > 1600;
  }));
  const auto rows = job.Status();
  EXPECT_EQ(rows.at(0)["level"], "kernels");
  EXPECT_EQ(rows.at(0)["steps_down"], 0);
  job.End();
  ASSERT_EQ(job.run().traces.size(), 1u);
  EXPECT_TRUE(BudgetGaps(job.run().traces[0]).empty());
  EXPECT_EQ(job.run().traces[0].cost.budget_ppm(), 600'000u);
}

TEST(BudgetTest, AStartLiftsWhatTheBudgetDecided) {
  LiveRun job(1, 2000, {"--budget", "0.001%"}, kLaunchBound);
  ASSERT_TRUE(job.AwaitLevel("ranges"));
  const auto start = Ranktap({"start", job.path(), "--level", "kernels"});
  EXPECT_TRUE(start->exited_with(0)) << start->errors();
  EXPECT_THAT(start->output(), HasSubstr("kernels on 1 process"));
}

TEST(BudgetTest, ABudgetThatIsNoneIsWrongUsage) {
  for (const char* text : {"much", "-1%", "101%", "2x", "0"}) {
    const auto wrong = Ranktap({"run", std::string("--budget=") + text, "--", "true"});
    EXPECT_TRUE(wrong->exited_with(2)) << text;
    EXPECT_THAT(wrong->errors(), HasSubstr("write 2% or 0.5%"));
  }
}

}  // namespace
}  // namespace ranktap::control_test

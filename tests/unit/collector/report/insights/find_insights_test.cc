// The engine: what it makes of what rules say.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/report/reports.h"
#include "collector/report/steps/recoverable.h"
#include "tests/unit/collector/report/insights/insight_program.h"
#include "tests/unit/collector/report/table_access.h"
#include "tests/unit/collector/synthetic_job.h"

namespace ranktap::collector {
namespace {

// Each 10 ms step: launched work that stands for 6 ms, while the host goes on to what the step ends
// with; the device is idle until 9 ms and works for 1 ms.
InsightProgram AProgram(uint32_t ranks = 1) {
  InsightProgram program(ranks);
  for (uint32_t rank = 0; rank < ranks; ++rank) {
    for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
      program.rank(rank).AddStep(at, at + 10 * kMs);
      program.rank(rank).AddKernel({.launched = at, .start = at + 6 * kMs, .end = at + 7 * kMs});
      program.rank(rank).AddKernel(
          {.launched = at + 9 * kMs, .start = at + 9 * kMs, .end = at + 10 * kMs});
    }
  }
  return program;
}

Insight AllOf(const RankFacts& rank, Cause cause) {
  return {.finding = "something",
          .lost_ns = 5 * kMs,
          .saving = Saving{.moments = rank.counted(), .causes = BitOf(cause)}};
}

TEST(Insights, ASavingIsWhatTheCriticalPathBears) {
  InsightProgram program = AProgram();
  const InsightRule rules[] = {
      {.name = "borne",
       .advice = "none",
       .of_rank =
           [](const RankFacts& rank) {
             return Answer{{AllOf(rank, Cause::kHost)}, {}};
           }},
      {.name = "not-borne", .advice = "none", .of_rank = [](const RankFacts& rank) {
         return Answer{{AllOf(rank, Cause::kDependency)}, {}};
       }}};
  const Insights insights = FindInsights(program.run(), rules);
  ASSERT_EQ(insights.list.size(), 2u);
  EXPECT_EQ(insights.list[0].rule, "borne");
  EXPECT_EQ(insights.list[0].saving_ns, 2 * kMs);
  EXPECT_EQ(insights.list[1].saving_ns, 0);
}

TEST(Insights, ARuleMayPromiseLessButNeverMore) {
  InsightProgram program = AProgram();
  const InsightRule rules[] = {
      {.name = "half",
       .advice = "none",
       .of_rank =
           [](const RankFacts& rank) {
             Insight insight = AllOf(rank, Cause::kHost);
             insight.saving->share = 0.5;
             return Answer{{insight}, {}};
           }},
      {.name = "at-most",
       .advice = "none",
       .of_rank =
           [](const RankFacts& rank) {
             Insight insight = AllOf(rank, Cause::kHost);
             insight.saving->most_ns = 300 * kUs;
             return Answer{{insight}, {}};
           }},
      {.name = "twice", .advice = "none", .of_rank = [](const RankFacts& rank) {
         Insight insight = AllOf(rank, Cause::kHost);
         insight.saving->share = 2;
         return Answer{{insight}, {}};
       }}};
  const Insights insights = FindInsights(program.run(), rules);
  ASSERT_EQ(insights.list.size(), 3u);
  EXPECT_EQ(insights.list[0].saving_ns, 2 * kMs);
  EXPECT_EQ(insights.list[1].saving_ns, 1 * kMs);
  EXPECT_EQ(insights.list[2].saving_ns, 300 * kUs);
}

// Of each rule, whatever it claims, on jobs of all kinds of lateness.
TEST(Insights, NoSavingIsMoreThanTheCriticalPathBears) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Cause causes[] = {Cause::kHost, Cause::kCompute, Cause::kMemory, Cause::kDataLoading};
    SyntheticJob job({.ranks = 1 + seed % 5,
                      .layers = 1 + seed % 3,
                      .seed = seed,
                      .jitter_ns = 30'000,
                      .syncs = seed % 2 == 0,
                      .late = {{.rank = 0, .cause = causes[seed % 4], .ns = 200'000}}});
    int64_t borne = 0;
    for (const CauseTimes& times : BorneByCriticalPath(job.run(), ComputeWaterfalls(job.run()))) {
      borne = std::accumulate(times.begin(), times.end(), borne);
    }
    const Insights insights = FindInsights(job.run());
    EXPECT_FALSE(insights.list.empty());
    for (const Insight& insight : insights.list) {
      EXPECT_LE(insight.saving_ns.value_or(0), borne) << insight.rule;
      EXPECT_LE(insight.saving_ns.value_or(0), insight.lost_ns) << insight.rule;
    }
  }
}

// By a device's clock that is behind, a kernel begins before its launch, and before the kernel
// that the host had waited for: the path goes back to one that begins later.
TEST(Insights, WorkThatThePathOverlapsIsBorneOnce) {
  InsightProgram program(1);
  for (int64_t at = 0; at < 10 * kMs; at += kMs) {
    program.rank(0).AddStep(at, at + kMs);
    program.rank(0).AddKernel(
        {.launched = at + 90 * kUs, .start = at + 110 * kUs, .end = at + 140 * kUs, .stream = 8});
    program.rank(0).AddCall("cudaDeviceSynchronize", at + 120 * kUs, at + 145 * kUs);
    program.rank(0).AddKernel(
        {.launched = at + 150 * kUs, .start = at + 100 * kUs, .end = at + 900 * kUs});
  }
  const size_t compute = static_cast<size_t>(Cause::kCompute);
  const auto borne = BorneByCriticalPath(program.run(), ComputeWaterfalls(program.run()))[0];
  // The long kernel of the last step, within which the short one lies, and nine short ones.
  EXPECT_EQ(Length(MomentsOnCriticalPath(program.run())[0][compute]), (800 + 9 * 30) * kUs);
  EXPECT_EQ(borne[compute], 107 * kUs);
}

// What the verdict may begin with is found by some rules alone, asked before all others or after.
TEST(Insights, OfTheVerdictAreThoseOfItsRulesAmongAll) {
  const auto is_of_verdict = [](const Insight& insight) {
    const std::span<const InsightRule> rules = AllInsightRules();
    const auto rule = std::ranges::find(rules, insight.rule, &InsightRule::name);
    return rule->of_compute || rule->of_host;
  };
  const auto described = [](const std::vector<Insight>& list) {
    std::vector<std::string> all;
    for (const Insight& of : list) {
      all.push_back(std::string(of.rule) + of.finding + of.where +
                    std::to_string(of.saving_ns.value_or(-1)) + std::to_string(of.lost_ns));
    }
    return all;
  };
  size_t found = 0;
  for (const bool verdict_first : {true, false}) {
    // A transpose computes for a fifth of the step, and the host launches it late.
    InsightProgram job = AProgram();
    for (int64_t at = 0; at < 10 * 10 * kMs; at += 10 * kMs) {
      job.rank(0).AddKernel({.name = "void cudnn::ops::nchwToNhwcKernel<float, float>",
                             .launched = at + 100 * kMs,
                             .start = at + 101 * kMs,
                             .end = at + 103 * kMs});
      job.rank(0).AddStep(at + 100 * kMs, at + 110 * kMs);
    }
    if (verdict_first) InsightsForVerdict(job.run());
    std::vector<Insight> some = InsightsOf(job.run()).list;
    EXPECT_EQ(described(some), described(FindInsights(job.run()).list));
    const size_t all = some.size();
    std::erase_if(some, std::not_fn(is_of_verdict));
    EXPECT_LT(some.size(), all);
    EXPECT_EQ(described(InsightsForVerdict(job.run())), described(some));
    found += some.size();
  }
  EXPECT_GT(found, 0u);
}

// What an overlap hides on one rank is no more than that rank computes, on however many it lies.
TEST(Insights, SeveralRanksTogetherSaveNoMoreThanOneOfThemCould) {
  // By jitter another rank bears each part of the path.
  SyntheticJob job({.ranks = 4, .layers = 3, .seed = 1, .jitter_ns = 30'000});
  const InsightRule rule = {
      .name = "overlap", .advice = "none", .of_rank = [](const RankFacts& rank) {
        Insight insight = AllOf(rank, Cause::kCompute);
        insight.saving->causes = UINT32_MAX;
        insight.saving->most_ns = 1 * kUs;
        return Answer{{insight}, {}};
      }};
  const Insights insights = FindInsights(job.run(), {&rule, 1});
  ASSERT_EQ(insights.list.size(), 1u);
  EXPECT_EQ(insights.list[0].ranks, 4);
  EXPECT_EQ(insights.list[0].saving_ns, 1 * kUs);
}

TEST(Insights, TheSameFindingOnAllRanksIsOneRow) {
  InsightProgram program = AProgram(4);
  const InsightRule rule = {
      .name = "everywhere", .advice = "none", .of_rank = [](const RankFacts& rank) {
        Insight insight = AllOf(rank, Cause::kHost);
        insight.lost_ns = rank.trace().info.rank == 2u ? 4 * kMs : 3 * kMs;
        return Answer{{insight}, {}};
      }};
  const Insights insights = FindInsights(program.run(), {&rule, 1});
  ASSERT_EQ(insights.list.size(), 1u);
  EXPECT_EQ(insights.list[0].ranks, 4);
  EXPECT_EQ(insights.list[0].trace, 2u);
  EXPECT_LE(insights.list[0].saving_ns.value(), 4 * kMs);
}

TEST(Insights, TheWindowsOfOneRankAreOneRank) {
  InsightProgram program = AProgram(2);
  program.rank(1).trace().info.rank = 0;
  const InsightRule rule = {
      .name = "everywhere", .advice = "none", .of_rank = [](const RankFacts& rank) {
        return Answer{{AllOf(rank, Cause::kHost)}, {}};
      }};
  const Insights insights = FindInsights(program.run(), {&rule, 1});
  ASSERT_EQ(insights.list.size(), 1u);
  EXPECT_EQ(insights.list[0].ranks, 1);
  EXPECT_LE(insights.list[0].saving_ns.value(), 2 * kMs);
}

TEST(Insights, ARuleThatTheTraceCannotAnswerIsCountedApart) {
  InsightProgram program = AProgram();
  const InsightRule rule = {.name = "blind", .advice = "none", .of_rank = [](const RankFacts&) {
                              return CannotTell("nobody looked");
                            }};
  const Insights insights = FindInsights(program.run(), {&rule, 1});
  EXPECT_EQ(insights.checked, 0u);
  ASSERT_EQ(insights.unchecked.size(), 1u);
  EXPECT_EQ(insights.unchecked[0].why, "nobody looked");
}

TEST(Insights, WhereEventsAreMissingNothingIsPromised) {
  InsightProgram program = AProgram();
  program->trace().not_read = 1'000;
  program->trace().not_read_most = "events of category x";
  program->trace().origin = TraceOrigin::kKineto;
  const InsightRule rule = {
      .name = "blind", .advice = "none", .of_rank = [](const RankFacts& rank) {
        return Answer{{AllOf(rank, Cause::kHost)}, {}};
      }};
  const Insights insights = FindInsights(program.run(), {&rule, 1});
  ASSERT_EQ(insights.list.size(), 1u);
  EXPECT_FALSE(insights.list[0].saving_ns);
  EXPECT_NE(insights.no_savings, "");
}

TEST(Insights, ANameOfNsysAsksItsRuleAlone) {
  InsightProgram program = AProgram();
  const Table table = TabulateInsightsNamed(program.run(), "gpu_gaps");
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(CellAt<std::string>(table, 0, "rule"), "gpu-gaps");
  EXPECT_EQ(table.notes[0], "1 rule checked");
}

TEST(Insights, EachRuleHasAnAdviceAndANameOfItsOwn) {
  std::set<std::string_view> names;
  for (const InsightRule& rule : AllInsightRules()) {
    EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
    EXPECT_TRUE(rule.advice.ends_with('.')) << rule.name;
    EXPECT_NE(rule.of_rank == nullptr, rule.of_job == nullptr) << rule.name;
  }
}

}  // namespace
}  // namespace ranktap::collector

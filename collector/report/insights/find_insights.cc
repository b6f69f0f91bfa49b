#include "collector/report/insights/find_insights.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "collector/facts/each_trace.h"
#include "collector/facts/rank_windows.h"
#include "collector/report/claims/claim.h"
#include "collector/report/steps/recoverable.h"

namespace ranktap::collector {
namespace {

// A rule that fires at more places than these says nothing new at the others.
constexpr size_t kMostPlaces = 3;

// What the critical path bears of it on its rank, per step.
int64_t OnCriticalPath(const Run& run, uint32_t trace, Saving saving) {
  const RankWaterfall& waterfall = ComputeWaterfalls(run)[trace];
  if (waterfall.counted == 0) return 0;
  const std::vector<Interval> moments = Merged(std::move(saving.moments));
  int64_t ns = 0;
  for (size_t c = 0; c < kCauses; ++c) {
    if ((saving.causes & BitOf(static_cast<Cause>(c))) == 0) continue;
    ns += LengthInBoth(moments, MomentsOnCriticalPath(run)[trace][c]);
  }
  const double share = std::clamp(saving.share, 0.0, 1.0);
  ns = static_cast<int64_t>(static_cast<double>(ns) * share) /
       static_cast<int64_t>(waterfall.counted);
  return std::clamp<int64_t>(ns, 0, std::max<int64_t>(0, saving.most_ns));
}

// By rule: what it said of each rank, or of the job alone.
using Answers = std::vector<std::vector<Answer>>;

Answers AskAll(const Run& run, std::span<const InsightRule> rules) {
  Answers answers(rules.size());
  for (size_t r = 0; r < rules.size(); ++r) {
    answers[r].resize(rules[r].of_job != nullptr ? 1 : run.traces.size());
    if (rules[r].of_job != nullptr) answers[r][0] = rules[r].of_job(run);
  }
  // Before the threads, which would wait for one of them.
  ComputeWaterfalls(run);
  for (const Claim claim : {Claim::kTransfer, Claim::kBusy}) RulingOn(run, claim);
  ForEachTraceAtOnce(run, [&](uint32_t t) {
    const RankFacts facts(run, t);
    for (size_t r = 0; r < rules.size(); ++r) {
      if (rules[r].of_rank == nullptr) continue;
      answers[r][t] = rules[r].of_rank(facts);
      for (Insight& insight : answers[r][t].insights) insight.trace = t;
    }
  });
  return answers;
}

// The rank that loses more represents two ranks with the same finding. The lower one represents two
// equals, in whatever order the files came.
bool Represents(const Run& run, const Insight& a, const Insight& b) {
  if (a.lost_ns != b.lost_ns) return a.lost_ns > b.lost_ns;
  return run.traces[a.trace].info.rank < run.traces[b.trace].info.rank;
}

// One finding for each place, whatever the ranks and their devices are called.
std::vector<Insight> JoinRanks(const Run& run, std::vector<Insight> of_rule) {
  struct Joined {
    Insight insight;
    // By rank. Only the device, and the window, that saves most counts: their step is one.
    std::map<uint32_t, std::optional<int64_t>> savings;
    int64_t most = 0;  // that one of them could save
  };
  std::map<std::string, Joined> by_place;
  for (Insight& insight : of_rule) {
    const auto [at, is_new] = by_place.try_emplace(insight.where, Joined{insight, {}, 0});
    Joined& joined = at->second;
    std::optional<int64_t>& saving = joined.savings[FirstOfRank(run, insight.trace)];
    saving = std::max(saving, insight.saving_ns);
    joined.most = std::max(joined.most, insight.most_ns);
    if (!is_new && Represents(run, insight, joined.insight)) joined.insight = std::move(insight);
  }
  std::vector<Insight> list;
  for (auto& [place, joined] : by_place) {
    Insight& insight = joined.insight;
    insight.ranks = static_cast<int64_t>(joined.savings.size());
    insight.saving_ns.reset();
    for (const auto& [trace, saving] : joined.savings) {
      if (saving) insight.saving_ns = insight.saving_ns.value_or(0) + *saving;
    }
    // The path changes ranks within a step: no rank can win back more than it loses.
    if (insight.saving_ns) {
      insight.saving_ns = std::min({*insight.saving_ns, insight.lost_ns, joined.most});
    }
    list.push_back(std::move(insight));
  }
  return list;
}

bool IsWorthMore(const Insight& a, const Insight& b) {
  const int64_t saving_a = a.saving_ns.value_or(-1), saving_b = b.saving_ns.value_or(-1);
  if (saving_a != saving_b) return saving_a > saving_b;
  return a.lost_ns > b.lost_ns;
}

void AddRule(const Run& run, const InsightRule& rule, std::vector<Answer> answers, Insights* to) {
  std::vector<Insight> found;
  bool checked = false;
  std::string_view why;
  for (Answer& answer : answers) {
    checked |= answer.unknown.empty();
    if (!answer.unknown.empty()) why = answer.unknown;
    for (Insight& insight : answer.insights) {
      insight.rule = rule.name;
      if (insight.advice.empty()) insight.advice = rule.advice;
      // The path is one of devices: where none did anything there is none.
      const bool has_path = !ComputeWaterfalls(run)[insight.trace].on_host;
      if (insight.saving && has_path && to->no_savings.empty()) {
        insight.most_ns = insight.saving->most_ns;
        insight.saving_ns =
            OnCriticalPath(run, insight.trace, std::move(*std::exchange(insight.saving, {})));
      }
      found.push_back(std::move(insight));
    }
  }
  if (!checked) {
    if (!why.empty()) to->unchecked.push_back({rule.name, why});
    return;
  }
  ++to->checked;
  found = JoinRanks(run, std::move(found));
  std::ranges::stable_sort(found, IsWorthMore);
  if (found.size() > kMostPlaces) {
    to->left_out += found.size() - kMostPlaces;
    found.resize(kMostPlaces);
  }
  to->list.insert(to->list.end(), std::make_move_iterator(found.begin()),
                  std::make_move_iterator(found.end()));
}

}  // namespace

Insights FindInsights(const Run& run, std::span<const InsightRule> rules) {
  Insights insights;
  insights.no_savings = RulingOn(run, Claim::kLargestLoss).why;
  const Ruling& recoverable = RulingOn(run, Claim::kRecoverable);
  if (insights.no_savings.empty() && recoverable.against != kOfLargestAlone) {
    insights.no_savings = recoverable.why;
  }
  Answers answers = AskAll(run, rules);
  for (size_t r = 0; r < rules.size(); ++r) {
    AddRule(run, rules[r], std::move(answers[r]), &insights);
  }
  std::ranges::stable_sort(insights.list, IsWorthMore);
  return insights;
}

const Insights& InsightsOf(const Run& run) {
  // Not made inside of the memo, whose lock the threads that ask about ranks want, too.
  struct Made {
    std::once_flag once;
    Insights insights;
  };
  struct Kept {
    std::shared_ptr<Made> made = std::make_shared<Made>();
  };
  Made& made = *run.memo.Get<Kept>([] { return Kept(); }).made;
  std::call_once(made.once, [&] { made.insights = FindInsights(run); });
  return made.insights;
}

}  // namespace ranktap::collector

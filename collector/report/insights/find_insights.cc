#include "collector/report/insights/find_insights.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "collector/facts/causes/waterfall.h"
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

// Why no saving is known; empty: they are.
const std::string& WhyNoSavings(const Run& run) {
  const std::string& why = RulingOn(run, Claim::kLargestLoss).why;
  const Ruling& recoverable = RulingOn(run, Claim::kRecoverable);
  return why.empty() && recoverable.against != kOfLargestAlone ? recoverable.why : why;
}

// Bounds what each promises. Their moments, which may be as large as the trace, are let go.
void BoundSavings(const Run& run, Answer* answer) {
  for (Insight& insight : answer->insights) {
    std::optional<Saving> saving = std::exchange(insight.saving, {});
    // The path is one of devices: where none did anything there is none.
    const bool has_path = !ComputeWaterfalls(run)[insight.trace].on_host;
    if (!saving || !has_path || !WhyNoSavings(run).empty()) continue;
    insight.most_ns = saving->most_ns;
    insight.saving_ns = OnCriticalPath(run, insight.trace, std::move(*saving));
  }
}

// By rule: what it said of each rank, or of the job alone. Empty: it was not asked.
using Answers = std::vector<std::vector<Answer>>;

std::vector<size_t> PlacesIf(std::span<const InsightRule> rules,
                             const std::function<bool(const InsightRule&)>& is_one) {
  std::vector<size_t> places;
  for (size_t r = 0; r < rules.size(); ++r) {
    if (is_one(rules[r])) places.push_back(r);
  }
  return places;
}

// Asks those of `places`.
void Ask(const Run& run, std::span<const InsightRule> rules, std::span<const size_t> places,
         Answers* to) {
  Answers& answers = *to;
  for (const size_t r : places) {
    answers[r].resize(rules[r].of_job != nullptr ? 1 : run.traces.size());
  }
  const auto ask = [&](const RankFacts& facts, size_t r) {
    if (rules[r].of_rank == nullptr) return;
    Answer& answer = answers[r][facts.index()] = rules[r].of_rank(facts);
    for (Insight& insight : answer.insights) insight.trace = facts.index();
  };
  if (run.traces.size() >= ThreadsFor(SIZE_MAX)) {
    ForEachTraceAtOnce(run, [&](uint32_t t) {
      const RankFacts facts(run, t);
      for (const size_t r : places) {
        ask(facts, r);
        if (rules[r].of_rank != nullptr) BoundSavings(run, &answers[r][t]);
      }
    });
  } else {
    // Rules of one rank wait for each other's facts: only few ranks are asked this way, and before
    // the critical path is known.
    for (uint32_t t = 0; t < run.traces.size(); ++t) {
      const RankFacts facts(run, t);
      // What takes longest first: the first rule makes what was lost, one of the last the roofline.
      const size_t count = places.size();
      ForEachAtOnce(count, [&](size_t i) { ask(facts, places[i == 0 ? 0 : count - i]); });
    }
  }
  ForEachAtOnce(places.size(), [&](size_t i) {
    const size_t r = places[i];
    if (rules[r].of_job != nullptr) answers[r][0] = rules[r].of_job(run);
    for (Answer& answer : answers[r]) BoundSavings(run, &answer);
  });
}

// The verdict begins with what these find. All others find what it tells as losses by itself.
bool IsForVerdict(const InsightRule& rule) { return rule.of_compute || rule.of_host; }

const Answers& AnswersForVerdict(const Run& run) {
  struct ForVerdict {
    Answers answers;
  };
  return run.memo
      .Get<ForVerdict>([&run] {
        const std::span<const InsightRule> rules = AllInsightRules();
        ForVerdict found{Answers(rules.size())};
        Ask(run, rules, PlacesIf(rules, IsForVerdict), &found.answers);
        return found;
      })
      .answers;
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
  if (answers.empty()) return;
  std::vector<Insight> found;
  bool checked = false;
  std::string_view why;
  for (Answer& answer : answers) {
    checked |= answer.unknown.empty();
    if (!answer.unknown.empty()) why = answer.unknown;
    for (Insight& insight : answer.insights) {
      insight.rule = rule.name;
      if (insight.advice.empty()) insight.advice = rule.advice;
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

Insights InsightsFrom(const Run& run, std::span<const InsightRule> rules, Answers answers) {
  Insights insights;
  insights.no_savings = WhyNoSavings(run);
  for (size_t r = 0; r < rules.size(); ++r) {
    AddRule(run, rules[r], std::move(answers[r]), &insights);
  }
  std::ranges::stable_sort(insights.list, IsWorthMore);
  return insights;
}

}  // namespace

Insights FindInsights(const Run& run, std::span<const InsightRule> rules) {
  Answers answers(rules.size());
  Ask(run, rules, PlacesIf(rules, [](const InsightRule&) { return true; }), &answers);
  return InsightsFrom(run, rules, std::move(answers));
}

const Insights& InsightsOf(const Run& run) {
  return run.memo.Get<Insights>([&run] {
    const std::span<const InsightRule> rules = AllInsightRules();
    Answers answers = AnswersForVerdict(run);
    Ask(run, rules, PlacesIf(rules, std::not_fn(IsForVerdict)), &answers);
    return InsightsFrom(run, rules, std::move(answers));
  });
}

const std::vector<Insight>& InsightsForVerdict(const Run& run) {
  struct ForVerdict {
    std::vector<Insight> list;
  };
  return run.memo
      .Get<ForVerdict>([&run] {
        return ForVerdict{InsightsFrom(run, AllInsightRules(), AnswersForVerdict(run)).list};
      })
      .list;
}

}  // namespace ranktap::collector

#include "collector/analysis/waterfall.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "collector/analysis/cells.h"
#include "collector/analysis/data_loading.h"
#include "collector/analysis/each_trace.h"
#include "collector/analysis/interval_set.h"
#include "collector/analysis/sync_calls.h"
#include "collector/analysis/wording.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kLatencyNs = 30'000;  // as HTA's consecutive_kernel_delay
using Set = std::vector<Interval>;

Set Union(const Set& a, const Set& b) {
  Set both(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), both.begin());
  return Merged(std::move(both));
}

Set SyncCalls(const Trace& trace) {
  Set set;
  ForEachSyncCall(trace, [&](const ApiCalls& calls, size_t i) {
    set.emplace_back(calls.start[i], calls.end[i] + 1);
  });
  return Merged(std::move(set));
}

bool Holds(const Set& set, int64_t time) {
  const auto after = std::upper_bound(set.begin(), set.end(), Interval{time, INT64_MAX});
  return after != set.begin() && std::prev(after)->second > time;
}

// The gaps of a rank's devices, cut into their causes.
struct Idle {
  Set sync, host, latency, dependency;
};

Idle ExplainIdle(const Trace& trace, const std::vector<DeviceSpan>& spans, int64_t first,
                 int64_t last) {
  const Set syncs = SyncCalls(trace);
  Idle idle;
  int64_t reached = first;
  const auto gap_until = [&](int64_t end, int64_t launched) {
    if (end <= reached) return;
    const int64_t ready = std::clamp(launched, reached, end);
    (Holds(syncs, reached) ? idle.sync : idle.host).emplace_back(reached, ready);
    (end - ready < kLatencyNs ? idle.latency : idle.dependency).emplace_back(ready, end);
  };
  for (const DeviceSpan& span : spans) {
    const int64_t launched = span.launch == kNone ? span.start : trace.api_calls.start[span.launch];
    gap_until(std::min(span.start, last), launched);
    reached = std::max(reached, span.end);
  }
  gap_until(last, last);
  for (Set* const set : {&idle.sync, &idle.host, &idle.latency, &idle.dependency}) {
    *set = Merged(std::move(*set));
  }
  return idle;
}

Set NotRecorded(const Trace& trace) {
  Set set;
  for (const Gap& gap : trace.gaps) {
    // Without what level full adds the device's work is there all the same.
    if (gap.source != "full") set.emplace_back(gap.start, gap.end);
  }
  return Merged(std::move(set));
}

StepList StepsOrAll(const Trace& trace, const std::vector<DeviceSpan>& spans) {
  StepList steps = DetectSteps(trace);
  if (!steps.list.empty() || spans.empty()) return steps;
  int64_t last = spans.front().end;
  for (const DeviceSpan& span : spans) last = std::max(last, span.end);
  steps.list.push_back({0, spans.front().start, last, false});
  return steps;
}

RankWaterfall Explain(const Trace& trace, Set waits) {
  const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
  RankWaterfall waterfall;
  waterfall.steps = StepsOrAll(trace, spans);
  if (waterfall.steps.list.empty()) return waterfall;
  std::array<Set, kCauses> sets;
  const auto set_of = [&sets](Cause cause) -> Set& { return sets[static_cast<size_t>(cause)]; };
  set_of(Cause::kCompute) = MergedIntervals(spans, WorkKind::kCompute);
  set_of(Cause::kWait) = Difference(Merged(std::move(waits)), set_of(Cause::kCompute));
  Set busy = Union(set_of(Cause::kCompute), set_of(Cause::kWait));
  set_of(Cause::kTransfer) = Difference(MergedIntervals(spans, WorkKind::kCommunication), busy);
  busy = Union(busy, set_of(Cause::kTransfer));
  set_of(Cause::kMemory) = Difference(MergedIntervals(spans, WorkKind::kMemory), busy);
  busy = Union(busy, set_of(Cause::kMemory));
  set_of(Cause::kNotRecorded) = Difference(NotRecorded(trace), busy);

  const std::vector<Step>& list = waterfall.steps.list;
  Idle idle = ExplainIdle(trace, spans, list.front().start, list.back().end);
  const Set loading = DataLoading(trace);
  const Set not_launched = Union(idle.sync, idle.host);
  const Set& off = set_of(Cause::kNotRecorded);
  set_of(Cause::kDataLoading) = Difference(Intersection(loading, not_launched), off);
  const Set above = Union(off, set_of(Cause::kDataLoading));
  set_of(Cause::kSync) = Difference(idle.sync, above);
  set_of(Cause::kHost) = Difference(idle.host, above);
  set_of(Cause::kLatency) = Difference(idle.latency, off);
  set_of(Cause::kDependency) = Difference(idle.dependency, off);

  for (const Step& step : list) {
    CauseTimes times{};
    for (size_t c = 0; c < kCauses; ++c) times[c] = Length(Within(sets[c], step.start, step.end));
    waterfall.times.push_back(times);
    if (step.warm_up) continue;
    ++waterfall.counted;
    waterfall.mean_step += step.length();
    for (size_t c = 0; c < kCauses; ++c) waterfall.mean[c] += times[c];
  }
  const auto counted = static_cast<int64_t>(waterfall.counted);
  waterfall.mean_step /= counted;
  for (int64_t& ns : waterfall.mean) ns /= counted;
  return waterfall;
}

// Which steps the means are of.
void AddStepsNote(const Run& run, const std::vector<RankWaterfall>& waterfalls, Table* table) {
  size_t ranks = 0, counted = 0, warm_up = 0;
  std::set<std::string> sources;
  for (size_t t = 0; t < waterfalls.size(); ++t) {
    if (waterfalls[t].counted == 0) {
      table->notes.push_back(RankName(run.traces[t]) + ": nothing ran on a device");
      continue;
    }
    const StepList& steps = waterfalls[t].steps;
    sources.insert(steps.source.empty() ? "no steps found, all of its time as one" : steps.source);
    ++ranks;
    counted += waterfalls[t].counted;
    warm_up += steps.list.size() - waterfalls[t].counted;
  }
  if (ranks == 0) return;
  std::string note = Counted(counted, "step") + " of " + Counted(ranks, "rank") + " by ";
  for (const std::string& source : sources)
    note += (&source == &*sources.begin() ? "" : "; ") + source;
  if (warm_up > 0) note += "; left out: " + std::to_string(warm_up) + " of warm-up";
  table->notes.push_back(std::move(note));
}

}  // namespace

std::string_view NameOf(Cause cause) {
  static constexpr std::array<std::string_view, kCauses> kNames = {
      "compute",        "exposed transfer", "exposed wait", "memory copy",
      "not recorded",   "data loading",     "sync",         "host",
      "kernel latency", "dependency"};
  return kNames[static_cast<size_t>(cause)];
}

const std::vector<RankWaterfall>& ComputeWaterfalls(const Run& run) {
  return run.memo.Get<std::vector<RankWaterfall>>([&run] {
    std::vector<Set> waits(run.traces.size());
    for (const CollectiveRun& collective : MatchCollectives(run)) {
      if (collective.members.size() < 2) continue;
      const int64_t transfer = collective.shortest();
      for (const CollectiveMember& member : collective.members) {
        if (member.length() > transfer) {
          waits[member.trace].emplace_back(member.start, member.end - transfer);
        }
      }
    }
    std::vector<RankWaterfall> waterfalls(run.traces.size());
    ForEachTraceAtOnce(
        run, [&](uint32_t t) { waterfalls[t] = Explain(run.traces[t], std::move(waits[t])); });
    return waterfalls;
  });
}

Table TabulateWaterfall(const Run& run, const AnalysisOptions&) {
  Table table{.name = "waterfall",
              .title = "Where the mean step went, mean of all ranks",
              .columns = {{"cause", Unit::kText},
                          {"mean_ns", Unit::kNs},
                          {"share_percent", Unit::kPercent},
                          {"least_ns", Unit::kNs, true},
                          {"most_ns", Unit::kNs},
                          {"most_rank", Unit::kCount}}};
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  std::vector<uint32_t> ranks;  // that used a device
  CauseTimes sums{};
  for (uint32_t t = 0; t < waterfalls.size(); ++t) {
    if (waterfalls[t].counted == 0) continue;
    ranks.push_back(t);
    for (size_t c = 0; c < kCauses; ++c) sums[c] += waterfalls[t].mean[c];
  }
  AddStepsNote(run, waterfalls, &table);
  const int64_t all = std::accumulate(sums.begin(), sums.end(), int64_t{0});
  for (size_t c = 0; c < kCauses; ++c) {
    if (sums[c] == 0) continue;
    const auto less = [&](uint32_t a, uint32_t b) {
      return waterfalls[a].mean[c] < waterfalls[b].mean[c];
    };
    const uint32_t least = *std::min_element(ranks.begin(), ranks.end(), less);
    const uint32_t most = *std::max_element(ranks.begin(), ranks.end(), less);
    table.rows.push_back({std::string(NameOf(static_cast<Cause>(c))),
                          sums[c] / static_cast<int64_t>(ranks.size()), Percent(sums[c], all),
                          waterfalls[least].mean[c], waterfalls[most].mean[c],
                          RankCell(run.traces[most])});
  }
  return table;
}

Table TabulateWaterfallByRank(const Run& run, const AnalysisOptions&) {
  Table table{.name = "waterfall-by-rank",
              .title = "Where the mean step went, by rank",
              .columns = {{"rank", Unit::kCount},
                          {"cause", Unit::kText},
                          {"mean_ns", Unit::kNs},
                          {"share_percent", Unit::kPercent}}};
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  for (size_t t = 0; t < waterfalls.size(); ++t) {
    const CauseTimes& mean = waterfalls[t].mean;
    const int64_t sum = std::accumulate(mean.begin(), mean.end(), int64_t{0});
    for (size_t c = 0; c < kCauses; ++c) {
      if (mean[c] == 0) continue;
      table.rows.push_back({RankCell(run.traces[t]), std::string(NameOf(static_cast<Cause>(c))),
                            mean[c], Percent(mean[c], sum)});
    }
  }
  AddStepsNote(run, waterfalls, &table);
  return table;
}

}  // namespace ranktap::collector

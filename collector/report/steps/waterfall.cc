#include "collector/report/steps/waterfall.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "collector/facts/device_steps.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/device_sweep.h"
#include "collector/report/steps/explained_time.h"

namespace ranktap::collector {
namespace {

StepList StepsOrAll(const Trace& trace, const std::vector<DeviceSpan>& spans) {
  StepList steps = DetectSteps(trace);
  steps.list = StepsOnDevice(trace).list;
  if (!steps.list.empty() || spans.empty()) return steps;
  int64_t last = spans.front().end;
  for (const DeviceSpan& span : spans) last = std::max(last, span.end);
  steps.list.push_back({0, spans.front().start, last, false});
  return steps;
}

void SplitDeviceTime(const Trace& trace, const std::vector<Interval>& waits,
                     const std::vector<Step>& steps, std::vector<CauseTimes>* times) {
  times->assign(steps.size(), CauseTimes{});
  size_t step = 0;
  // Pieces come in the order of time; what lies between two steps is nobody's.
  SweepDevice(trace, waits, steps.front().start, steps.back().end,
              [&](Cause cause, int64_t start, int64_t end, uint32_t) {
                while (step < steps.size() && steps[step].end <= start) ++step;
                for (size_t i = step; i < steps.size() && steps[i].start < end; ++i) {
                  (*times)[i][static_cast<size_t>(cause)] +=
                      std::min(end, steps[i].end) - std::max(start, steps[i].start);
                }
              });
}

// Of a rank that used no device.
void SplitHostTime(const Trace& trace, const HostCommunication& communication,
                   const std::vector<Step>& steps, std::vector<CauseTimes>* times) {
  Explained explained = PausesOfHost(trace);
  explained.Add(Cause::kWait, communication.waits);
  explained.Add(Cause::kTransfer, communication.transfers);
  AddPasses(trace, &explained);
  PieceCursor pieces(explained.Take());
  times->assign(steps.size(), CauseTimes{});
  for (size_t i = 0; i < steps.size(); ++i) {
    pieces.Split(steps[i].start, steps[i].end, Cause::kHost,
                 [&](int64_t start, int64_t end, Cause cause) {
                   (*times)[i][static_cast<size_t>(cause)] += end - start;
                 });
  }
}

RankWaterfall Explain(const Trace& trace, const std::vector<Interval>& waits,
                      const HostCommunication& communication) {
  const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
  RankWaterfall waterfall;
  waterfall.steps = StepsOrAll(trace, spans);
  const std::vector<Step>& list = waterfall.steps.list;
  if (list.empty()) return waterfall;
  waterfall.host_ahead = StepsOnDevice(trace).host_ahead;
  waterfall.on_host = spans.empty();
  if (waterfall.on_host) {
    SplitHostTime(trace, communication, list, &waterfall.times);
  } else {
    SplitDeviceTime(trace, waits, list, &waterfall.times);
  }
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].warm_up) continue;
    ++waterfall.counted;
    waterfall.mean_step += list[i].length();
    for (size_t c = 0; c < kCauses; ++c) waterfall.mean[c] += waterfall.times[i][c];
  }
  const auto counted = static_cast<int64_t>(waterfall.counted);
  waterfall.mean_step /= counted;
  for (int64_t& ns : waterfall.mean) ns /= counted;
  return waterfall;
}

// Which steps the means are of.
void AddStepsNote(const Run& run, const std::vector<RankWaterfall>& waterfalls, Table* table) {
  size_t unnamed = 0, counted = 0, warm_up = 0;
  std::set<uint32_t> named;  // a rank may have several traces: windows one after the other
  std::set<std::string> sources;
  for (size_t t = 0; t < waterfalls.size(); ++t) {
    if (waterfalls[t].counted == 0) {
      table->notes.push_back(fmt::format("{}: nothing ran on a device", RankName(run.traces[t])));
      continue;
    }
    const StepList& steps = waterfalls[t].steps;
    sources.insert(steps.source.empty() ? "no steps found, all of its time as one" : steps.source);
    const std::optional<uint32_t> rank = run.traces[t].info.rank;
    rank ? static_cast<void>(named.insert(*rank)) : static_cast<void>(++unnamed);
    counted += waterfalls[t].counted;
    warm_up += steps.list.size() - waterfalls[t].counted;
  }
  const size_t ranks = named.size() + unnamed;
  if (ranks == 0) return;
  std::string note = fmt::format("{} of {} by ", Counted(counted, "step"), Counted(ranks, "rank"));
  for (const std::string& source : sources)
    note += (&source == &*sources.begin() ? "" : "; ") + source;
  if (warm_up > 0) note += fmt::format("; left out: {} of warm-up", warm_up);
  table->notes.push_back(std::move(note));
  if (std::string ahead = DescribeHostAhead(run); !ahead.empty()) {
    table->notes.push_back(std::move(ahead));
  }
}

// A cause, over the ranks that used a device.
struct CauseRow {
  Cause cause{};
  int64_t mean_ns = 0;
  int64_t sum_ns = 0, all_ns = 0;  // of it and of all causes, over the ranks
  int64_t least_ns = 0, most_ns = 0;
  const Trace* most = nullptr;
};

const ColumnsOf<CauseRow> kCauseColumns = {
    {"cause", Unit::kText, [](const CauseRow& row) { return std::string(NameOf(row.cause)); }},
    {"mean_ns", Unit::kNs, [](const CauseRow& row) { return row.mean_ns; }},
    {"share_percent", Unit::kPercent,
     [](const CauseRow& row) { return Percent(row.sum_ns, row.all_ns); }},
    {"least_ns", Unit::kNs, [](const CauseRow& row) { return row.least_ns; }, Shown::kDetail},
    {"most_ns", Unit::kNs, [](const CauseRow& row) { return row.most_ns; }},
    {"most_rank", Unit::kCount, [](const CauseRow& row) { return RankCell(*row.most); }},
};

// The first rank with the least of a cause, and the first with the most.
std::pair<uint32_t, uint32_t> LeastAndMost(const std::vector<RankWaterfall>& waterfalls,
                                           const std::vector<uint32_t>& ranks, size_t cause) {
  const auto less = [&](uint32_t a, uint32_t b) {
    return waterfalls[a].mean[cause] < waterfalls[b].mean[cause];
  };
  return {*std::min_element(ranks.begin(), ranks.end(), less),
          *std::max_element(ranks.begin(), ranks.end(), less)};
}

std::vector<CauseRow> CompareRanks(const Run& run, const std::vector<RankWaterfall>& waterfalls) {
  std::vector<uint32_t> ranks;  // that used a device
  CauseTimes sums{};
  for (uint32_t t = 0; t < waterfalls.size(); ++t) {
    if (waterfalls[t].counted == 0) continue;
    ranks.push_back(t);
    for (size_t c = 0; c < kCauses; ++c) sums[c] += waterfalls[t].mean[c];
  }
  const int64_t all = std::accumulate(sums.begin(), sums.end(), int64_t{0});
  std::vector<CauseRow> rows;
  for (size_t c = 0; c < kCauses; ++c) {
    if (sums[c] == 0) continue;
    const auto [least, most] = LeastAndMost(waterfalls, ranks, c);
    rows.push_back({static_cast<Cause>(c), sums[c] / static_cast<int64_t>(ranks.size()), sums[c],
                    all, waterfalls[least].mean[c], waterfalls[most].mean[c], &run.traces[most]});
  }
  return rows;
}

struct CauseOfRank {
  const Trace* trace = nullptr;
  Cause cause{};
  int64_t mean_ns = 0, step_ns = 0;
};

const ColumnsOf<CauseOfRank> kCauseOfRankColumns = {
    {"rank", Unit::kCount, [](const CauseOfRank& row) { return RankCell(*row.trace); }},
    {"cause", Unit::kText, [](const CauseOfRank& row) { return std::string(NameOf(row.cause)); }},
    {"mean_ns", Unit::kNs, [](const CauseOfRank& row) { return row.mean_ns; }},
    {"share_percent", Unit::kPercent,
     [](const CauseOfRank& row) { return Percent(row.mean_ns, row.step_ns); }},
};

}  // namespace

std::string_view NameOf(Cause cause) {
  static constexpr std::array<std::string_view, kCauses> kNames = {
      "compute",    "exposed transfer",   "exposed wait", "memory copy",   "not recorded",
      "checkpoint", "garbage collection", "data loading", "graph capture", "sync",
      "host",       "kernel latency",     "dependency",   "optimizer",     "backward",
      "forward"};
  return kNames[static_cast<size_t>(cause)];
}

const std::vector<RankWaterfall>& ComputeWaterfalls(const Run& run) {
  return run.memo.Get<std::vector<RankWaterfall>>([&run] {
    const std::vector<std::vector<Interval>>& waits = WaitsForOtherRanks(run);
    const std::vector<HostCommunication> communication = CommunicationOfHosts(run);
    std::vector<RankWaterfall> waterfalls(run.traces.size());
    ForEachTraceAtOnce(run, [&](uint32_t t) {
      waterfalls[t] = Explain(run.traces[t], waits[t], communication[t]);
    });
    return waterfalls;
  });
}

std::string DescribeHostAhead(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const auto most = std::max_element(
      waterfalls.begin(), waterfalls.end(),
      [](const RankWaterfall& a, const RankWaterfall& b) { return a.host_ahead < b.host_ahead; });
  if (most == waterfalls.end() || most->host_ahead <= 1) return "";
  return fmt::format("the host of {} runs {:.1f} {}s ahead of its device: steps are the device's",
                     RankName(run.traces[static_cast<size_t>(most - waterfalls.begin())]),
                     most->host_ahead, most->steps.noun());
}

Table TabulateWaterfall(const Run& run, const ReportOptions&) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  Table table = TableOf("Where the mean step went, mean of all ranks", kCauseColumns,
                        CompareRanks(run, waterfalls));
  AddStepsNote(run, waterfalls, &table);
  return table;
}

Table TabulateWaterfallByRank(const Run& run, const ReportOptions&) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  std::vector<CauseOfRank> rows;
  for (size_t t = 0; t < waterfalls.size(); ++t) {
    const CauseTimes& mean = waterfalls[t].mean;
    const int64_t sum = std::accumulate(mean.begin(), mean.end(), int64_t{0});
    for (size_t c = 0; c < kCauses; ++c) {
      if (mean[c] != 0) rows.push_back({&run.traces[t], static_cast<Cause>(c), mean[c], sum});
    }
  }
  Table table = TableOf("Where the mean step went, by rank", kCauseOfRankColumns, rows);
  AddStepsNote(run, waterfalls, &table);
  return table;
}

}  // namespace ranktap::collector

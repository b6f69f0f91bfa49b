#include "collector/report/steps/waterfall.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "collector/analysis/device_steps.h"
#include "collector/analysis/each_trace.h"
#include "collector/analysis/host_activity.h"
#include "collector/analysis/numbers/interval_set.h"
#include "collector/analysis/sync_calls.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/explained_time.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kLatencyNs = 30'000;  // as HTA's consecutive_kernel_delay
using Set = std::vector<Interval>;

Set SyncCalls(const Trace& trace) {
  Set set;
  ForEachSyncCall(trace, [&](const ApiCalls& calls, size_t i) {
    set.emplace_back(calls.start[i], calls.end[i] + 1);
  });
  return Merged(std::move(set));
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
  steps.list = StepsOnDevice(trace).list;
  if (!steps.list.empty() || spans.empty()) return steps;
  int64_t last = spans.front().end;
  for (const DeviceSpan& span : spans) last = std::max(last, span.end);
  steps.list.push_back({0, spans.front().start, last, false});
  return steps;
}

// Walks a set by times that only grow.
class Cursor {
 public:
  explicit Cursor(Set set) : set_(std::move(set)) {}
  bool Holds(int64_t time) {
    while (at_ < set_.size() && set_[at_].second <= time) ++at_;
    return at_ < set_.size() && set_[at_].first <= time;
  }
  // Calls visit(start, end, whether the set holds there) for [start, end), piece by piece.
  template <typename Visit>
  void Split(int64_t start, int64_t end, Visit&& visit) {
    while (start < end) {
      const bool holds = Holds(start);
      const int64_t change = at_ == set_.size() ? end : holds ? set_[at_].second : set_[at_].first;
      const int64_t until = std::min(end, change);
      visit(start, until, holds);
      start = until;
    }
  }

 private:
  Set set_;
  size_t at_ = 0;
};

// What stops a host whether it has a device or not.
Explained Pauses(const Trace& trace) {
  Explained pauses;
  pauses.Add(Cause::kCheckpoint, PhaseIntervals(trace, proto::kCheckpointPhase));
  pauses.Add(Cause::kCollection, PhaseIntervals(trace, proto::kCollectionPhase));
  pauses.Add(Cause::kDataLoading, DataLoading(trace));
  return pauses;
}

// Gives each moment its cause in one pass over the work by start. Sets for each cause, and what is
// left of them without those above, took four times as long: most of it in pages written once.
class Sweep {
 public:
  Sweep(const Trace& trace, Set waits, const std::vector<Step>& steps,
        std::vector<CauseTimes>* times)
      : trace_(trace),
        steps_(steps),
        times_(*times),
        at_(steps.front().start),
        last_(steps.back().end),
        waits_(Merged(std::move(waits))),
        syncs_(SyncCalls(trace)),
        off_(NotRecorded(trace)),
        pauses_(Pauses(trace).Take()) {
    times_.assign(steps.size(), CauseTimes{});
  }

  void Run(const std::vector<DeviceSpan>& spans) {
    for (const DeviceSpan& span : spans) {
      if (at_ >= last_) return;
      const int64_t launched =
          span.launch == kNone ? span.start : trace_.api_calls.start[span.launch];
      MoveTo(std::min(span.start, last_), launched);
      int64_t& reached = reached_[static_cast<size_t>(span.kind)];
      reached = std::max(reached, span.end);
    }
    MoveTo(last_, last_);
  }

 private:
  // `launched`: when the work was that begins at `until`.
  void MoveTo(int64_t until, int64_t launched) {
    while (at_ < until) {
      const int64_t from = at_;
      if (from < Reached(WorkKind::kCompute)) {
        at_ = std::min(until, Reached(WorkKind::kCompute));
        Add(Cause::kCompute, from, at_);
      } else if (from < Reached(WorkKind::kCommunication)) {
        at_ = std::min(until, Reached(WorkKind::kCommunication));
        waits_.Split(from, at_, [this](int64_t start, int64_t end, bool waits) {
          Add(waits ? Cause::kWait : Cause::kTransfer, start, end);
        });
      } else if (from < Reached(WorkKind::kMemory)) {
        at_ = std::min(until, Reached(WorkKind::kMemory));
        Add(Cause::kMemory, from, at_);
      } else {
        at_ = until;
        AddIdle(from, until, launched);
      }
    }
  }
  int64_t Reached(WorkKind kind) const { return reached_[static_cast<size_t>(kind)]; }

  void AddIdle(int64_t start, int64_t end, int64_t launched) {
    const int64_t ready = std::clamp(launched, start, end);
    const Cause host = syncs_.Holds(start) ? Cause::kSync : Cause::kHost;
    AddRecorded(start, ready, [this, host](int64_t from, int64_t until) {
      pauses_.Split(from, until, host,
                    [this](int64_t a, int64_t b, Cause cause) { Add(cause, a, b); });
    });
    const Cause device = end - ready < kLatencyNs ? Cause::kLatency : Cause::kDependency;
    AddRecorded(ready, end,
                [this, device](int64_t from, int64_t until) { Add(device, from, until); });
  }
  template <typename Visit>
  void AddRecorded(int64_t start, int64_t end, Visit&& visit) {
    off_.Split(start, end, [&](int64_t from, int64_t until, bool off) {
      off ? Add(Cause::kNotRecorded, from, until) : visit(from, until);
    });
  }

  // Pieces come in the order of time; what lies between two steps is nobody's.
  void Add(Cause cause, int64_t start, int64_t end) {
    while (step_ < steps_.size() && steps_[step_].end <= start) ++step_;
    for (size_t i = step_; i < steps_.size() && steps_[i].start < end; ++i) {
      times_[i][static_cast<size_t>(cause)] +=
          std::min(end, steps_[i].end) - std::max(start, steps_[i].start);
    }
  }

  const Trace& trace_;
  const std::vector<Step>& steps_;
  std::vector<CauseTimes>& times_;
  int64_t at_, last_;
  std::array<int64_t, 4> reached_ = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};  // by kind
  size_t step_ = 0;
  Cursor waits_, syncs_, off_;
  PieceCursor pauses_;
};

// Of a rank that used no device.
void SplitHostTime(const Trace& trace, const HostCommunication& communication,
                   const std::vector<Step>& steps, std::vector<CauseTimes>* times) {
  Explained explained = Pauses(trace);
  explained.Add(Cause::kWait, communication.waits);
  explained.Add(Cause::kTransfer, communication.transfers);
  explained.Add(Cause::kOptimizer, PhaseIntervals(trace, proto::kOptimizerPhase));
  explained.Add(Cause::kBackward, PhaseIntervals(trace, proto::kBackwardPhase));
  // As torch.profiler names them, where our own hooks were not.
  explained.Add(Cause::kOptimizer, OperatorsNamed(trace, "Optimizer.step#"));
  explained.Add(Cause::kBackward, OperatorsNamed(trace, "autograd::engine::evaluate_function"));
  explained.Add(Cause::kForward, ForwardPasses(trace));
  PieceCursor pieces(explained.Take());
  times->assign(steps.size(), CauseTimes{});
  for (size_t i = 0; i < steps.size(); ++i) {
    pieces.Split(steps[i].start, steps[i].end, Cause::kHost,
                 [&](int64_t start, int64_t end, Cause cause) {
                   (*times)[i][static_cast<size_t>(cause)] += end - start;
                 });
  }
}

RankWaterfall Explain(const Trace& trace, Set waits, const HostCommunication& communication) {
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
    Sweep(trace, std::move(waits), list, &waterfall.times).Run(spans);
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
      "compute",        "exposed transfer",   "exposed wait", "memory copy", "not recorded",
      "checkpoint",     "garbage collection", "data loading", "sync",        "host",
      "kernel latency", "dependency",         "optimizer",    "backward",    "forward"};
  return kNames[static_cast<size_t>(cause)];
}

const std::vector<RankWaterfall>& ComputeWaterfalls(const Run& run) {
  return run.memo.Get<std::vector<RankWaterfall>>([&run] {
    std::vector<Set> waits(run.traces.size());
    static const std::vector<CollectiveRun> nobody_to_wait_for;
    for (const CollectiveRun& collective :
         run.traces.size() > 1 ? MatchCollectives(run) : nobody_to_wait_for) {
      if (collective.members.size() < 2) continue;
      const int64_t transfer = collective.shortest();
      for (const CollectiveMember& member : collective.members) {
        if (member.length() > transfer) {
          waits[member.trace].emplace_back(member.start, member.end - transfer);
        }
      }
    }
    const std::vector<HostCommunication> communication = CommunicationOfHosts(run);
    std::vector<RankWaterfall> waterfalls(run.traces.size());
    ForEachTraceAtOnce(run, [&](uint32_t t) {
      waterfalls[t] = Explain(run.traces[t], std::move(waits[t]), communication[t]);
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

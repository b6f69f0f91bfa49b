#include "collector/facts/causes/critical_path.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/clock_alignment.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/sync_calls.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kStreamGapNs = 5'000;  // within it the stream's order explains a start

// Answers the walk's questions about one rank.
class RankIndex {
 public:
  explicit RankIndex(const Trace& trace)
      : trace_(trace), spans_(DeviceTimeline(trace)), loading_(DataLoading(trace)) {
    by_end_.resize(spans_.size());
    std::iota(by_end_.begin(), by_end_.end(), 0u);
    std::stable_sort(by_end_.begin(), by_end_.end(),
                     [this](uint32_t a, uint32_t b) { return spans_[a].end < spans_[b].end; });
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> last;
    before_.resize(spans_.size(), kNone);
    span_of_kernel_.resize(trace.kernels.size(), kNone);
    for (uint32_t i = 0; i < spans_.size(); ++i) {
      const auto [at, is_new] = last.try_emplace({spans_[i].device, spans_[i].stream}, i);
      if (!is_new) before_[i] = std::exchange(at->second, i);
      if (spans_[i].table == DeviceSpan::Table::kKernel) span_of_kernel_[spans_[i].row] = i;
    }
    ForEachSyncCall(trace, [this](const ApiCalls& calls, size_t i) {
      syncs_.emplace_back(calls.end[i], calls.start[i]);
    });
    std::sort(syncs_.begin(), syncs_.end());
  }

  const Trace& trace() const { return trace_; }
  const DeviceSpan& span(uint32_t i) const { return spans_[i]; }
  size_t size() const { return spans_.size() + syncs_.size(); }
  uint32_t SpanOfKernel(uint32_t kernel) const { return span_of_kernel_[kernel]; }
  uint32_t LastToEnd() const { return by_end_.empty() ? kNone : by_end_.back(); }
  // The last to end at `time` or before; kNone: none.
  uint32_t LastEnded(int64_t time) const {
    const auto after =
        std::upper_bound(by_end_.begin(), by_end_.end(), time,
                         [this](int64_t at, uint32_t i) { return at < spans_[i].end; });
    return after == by_end_.begin() ? kNone : *std::prev(after);
  }
  // What `i` began after, on the device; kNone: nothing.
  uint32_t Before(uint32_t i) const {
    const int64_t start = spans_[i].start;
    const uint32_t in_order = before_[i];
    if (in_order != kNone && spans_[in_order].end <= start &&
        start - spans_[in_order].end <= kStreamGapNs) {
      return in_order;
    }
    const uint32_t latest = LastEnded(start);
    return latest == i ? in_order : latest;  // work that took no time ended at its own start
  }
  // The last call that waited for the device and returned by `time`: its start and end.
  std::optional<Interval> SyncBefore(int64_t time) const {
    const auto after = std::upper_bound(syncs_.begin(), syncs_.end(), Interval{time, INT64_MAX});
    if (after == syncs_.begin()) return std::nullopt;
    return Interval{std::prev(after)->second, std::prev(after)->first};
  }
  int64_t Loading(int64_t start, int64_t end) const { return Length(Within(loading_, start, end)); }

 private:
  const Trace& trace_;
  const std::vector<DeviceSpan>& spans_;
  std::vector<uint32_t> by_end_, before_, span_of_kernel_;
  std::vector<Interval> loading_;
  std::vector<Interval> syncs_;  // end, start
};

class Walk {
 public:
  Walk(const Run& run, const std::vector<CollectiveRun>& collectives)
      : run_(run), collectives_(collectives), ranks_(run.traces.size()), member_(ranks_.size()) {
    for (size_t t = 0; t < ranks_.size(); ++t) member_[t].resize(run.traces[t].kernels.size());
    for (uint32_t c = 0; c < collectives.size(); ++c) {
      for (const CollectiveMember& member : collectives[c].members) {
        member_[member.trace][member.kernel] = c + 1;
      }
    }
  }

  std::vector<PathSegment> From(uint32_t trace) {
    trace_ = trace;
    uint32_t at = Rank().LastToEnd();
    // Causes precede effects; matched wrongly, collectives could lead in a circle.
    size_t left = 0;
    for (const Trace& of : run_.traces)
      left += of.kernels.size() + of.copies.size() + of.events + 1;
    while (at != kNone && left-- > 0) at = Follow(at);
    std::reverse(path_.begin(), path_.end());
    return std::move(path_);
  }

 private:
  const RankIndex& Rank() {
    if (!ranks_[trace_]) ranks_[trace_].emplace(run_.traces[trace_]);
    return *ranks_[trace_];
  }
  void Add(Cause cause, int64_t start, int64_t end, uint32_t kernel = kNone,
           uint32_t graph = kNone) {
    if (end > start) path_.push_back({trace_, cause, kernel, start, end, end - start, graph});
  }

  void AddWork(Cause cause, const DeviceSpan& span) {
    using Table = DeviceSpan::Table;
    const uint32_t graph = span.table == Table::kGraphLaunch
                               ? run_.traces[trace_].graph_launches.graph.At(span.row)
                               : kNone;
    Add(cause, span.start, span.end, span.table == Table::kKernel ? span.name : kNone, graph);
  }

  // Adds work `i`; returns what it waited for.
  uint32_t Follow(uint32_t i) {
    const DeviceSpan span = Rank().span(i);
    const uint32_t collective =
        span.table == DeviceSpan::Table::kKernel ? member_[trace_][span.row] : 0;
    if (collective != 0 && collectives_[collective - 1].members.size() > 1) {
      const CollectiveRun& call = collectives_[collective - 1];
      const CollectiveMember& last = call.members[call.last_arriver()];
      trace_ = last.trace;
      i = Rank().SpanOfKernel(last.kernel);
      Add(Cause::kTransfer, last.start, last.end, Rank().span(i).name);
      return FollowStart(i);
    }
    const Cause cause = span.kind == WorkKind::kMemory          ? Cause::kMemory
                        : span.kind == WorkKind::kCommunication ? Cause::kTransfer
                                                                : Cause::kCompute;
    AddWork(cause, span);
    return FollowStart(i);
  }

  // The work for which the start of work `i` waited.
  uint32_t FollowStart(uint32_t i) {
    const DeviceSpan& span = Rank().span(i);
    const uint32_t before = Rank().Before(i);
    const int64_t free = before == kNone ? INT64_MIN : Rank().span(before).end;
    const int64_t launched = span.launch == kNone ? INT64_MIN : HandedOver(Rank().trace(), span);
    const int64_t ready = std::max(free, launched);
    if (ready == INT64_MIN) return kNone;
    const int64_t gap = span.start - ready;
    Add(gap < kLatencyNs ? Cause::kLatency : Cause::kDependency, ready, span.start);
    return launched > free ? FollowHost(launched) : before;
  }

  // What the host waited for that launched something at `time`.
  uint32_t FollowHost(int64_t time) {
    while (const std::optional<Interval> sync = Rank().SyncBefore(time)) {
      AddHost(sync->second, time);
      const uint32_t ended = Rank().LastEnded(sync->second);
      if (ended != kNone && Rank().span(ended).end > sync->first) {
        Add(Cause::kSync, Rank().span(ended).end, sync->second);
        return ended;
      }
      AddHost(sync->first, sync->second);
      if (sync->first >= time) break;  // of no length
      time = sync->first;
    }
    AddHost(std::min(time, Rank().trace().first_ns), time);
    return kNone;
  }
  void AddHost(int64_t start, int64_t end) {
    const int64_t loading = Rank().Loading(start, end);
    const auto add = [&](Cause cause, int64_t ns) {
      if (ns > 0) path_.push_back({trace_, cause, kNone, start, end, ns});
    };
    add(Cause::kHost, end - start - loading);
    add(Cause::kDataLoading, loading);
  }

  const Run& run_;
  const std::vector<CollectiveRun>& collectives_;
  std::vector<std::optional<RankIndex>> ranks_;  // made when the path comes there
  std::vector<std::vector<uint32_t>> member_;    // by kernel: 1 + index of its collective
  uint32_t trace_ = 0;
  std::vector<PathSegment> path_;
};

int64_t LastEnd(const Trace& trace) {
  int64_t last = INT64_MIN;
  for (const DeviceWork* const work : {static_cast<const DeviceWork*>(&trace.kernels),
                                       static_cast<const DeviceWork*>(&trace.copies),
                                       static_cast<const DeviceWork*>(&trace.memsets),
                                       static_cast<const DeviceWork*>(&trace.graph_launches)}) {
    for (const int64_t end : work->end) last = std::max(last, end);
  }
  return last;
}

std::vector<PathSegment> WalkBack(const Run& run) {
  const std::vector<CollectiveRun>& collectives = MatchCollectives(run);
  // The rank that worked last, by the clocks as collectives align them.
  const std::vector<ClockDifference> clocks = AlignClocks(run, collectives);
  std::optional<uint32_t> last_rank;
  double last = 0;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    const int64_t end = LastEnd(run.traces[t]);
    if (end == INT64_MIN) continue;
    const double offset =
        clocks[t].offset_ns + clocks[t].drift_ppm / 1e6 * static_cast<double>(end - clocks[t].at);
    const double common = static_cast<double>(end) - offset;
    if (last_rank && common <= last) continue;
    last_rank = t;
    last = common;
  }
  return last_rank ? Walk(run, collectives).From(*last_rank) : std::vector<PathSegment>();
}

}  // namespace

const std::vector<PathSegment>& FindCriticalPath(const Run& run) {
  struct CriticalPath {
    std::vector<PathSegment> path;
  };
  return run.memo.Get<CriticalPath>([&run] { return CriticalPath{WalkBack(run)}; }).path;
}

}  // namespace ranktap::collector

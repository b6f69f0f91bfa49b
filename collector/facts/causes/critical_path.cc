#include "collector/facts/causes/critical_path.h"

#include <algorithm>
#include <optional>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/clock_alignment.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_order.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/interval_set.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kStreamGapNs = 5'000;  // within it the stream's order explains a start

// One rank's part of the graph.
struct RankOrder {
  explicit RankOrder(const Trace& of)
      : trace(of), spans(DeviceTimeline(of)), order(of), loading(DataLoading(of)) {}

  uint32_t SpanOfKernel(uint32_t kernel) const {
    const int64_t start = trace.kernels.start[kernel];
    const auto at = std::ranges::lower_bound(spans, start, {}, &DeviceSpan::start);
    const auto span = std::find_if(at, spans.end(), [kernel](const DeviceSpan& one) {
      return one.table == DeviceSpan::Table::kKernel && one.row == kernel;
    });
    return static_cast<uint32_t>(span - spans.begin());
  }
  // What `i` began after, on the device; kNone: nothing.
  uint32_t Before(uint32_t i) const {
    const int64_t start = spans[i].start;
    const uint32_t in_order = order.Before(i);
    if (in_order != kNone && spans[in_order].end <= start &&
        start - spans[in_order].end <= kStreamGapNs) {
      return in_order;
    }
    const uint32_t latest = order.LastEnded(start);
    return latest == i ? in_order : latest;  // work that took no time ended at its own start
  }
  // The last call that waited for the device and returned by `time`; null: none.
  const DeviceReturn* ReturnBefore(int64_t time) const {
    const auto after = std::ranges::upper_bound(order.returns(), time, {}, &DeviceReturn::returned);
    return after == order.returns().begin() ? nullptr : &*std::prev(after);
  }
  int64_t Loading(int64_t start, int64_t end) const { return Length(Within(loading, start, end)); }

  const Trace& trace;
  const std::vector<DeviceSpan>& spans;
  DeviceOrder order;
  std::vector<Interval> loading;
};

class Walk {
 public:
  explicit Walk(const Run& run)
      : run_(run),
        collectives_(MatchCollectives(run)),
        by_kernel_(CollectivesByKernel(run)),
        ranks_(run.traces.size()) {}

  std::vector<PathSegment> From(uint32_t trace) {
    trace_ = trace;
    uint32_t at = Rank().order.LastEnded(INT64_MAX);
    // Causes precede effects; matched wrongly, collectives could lead in a circle.
    size_t left = 0;
    for (const Trace& of : run_.traces)
      left += of.kernels.size() + of.copies.size() + of.events + 1;
    while (at != kNone && left-- > 0) at = Follow(at);
    std::reverse(path_.begin(), path_.end());
    return std::move(path_);
  }

 private:
  const RankOrder& Rank() {
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
    const DeviceSpan span = Rank().spans[i];
    const bool has_collectives =
        span.table == DeviceSpan::Table::kKernel && !by_kernel_[trace_].empty();
    const uint32_t collective = has_collectives ? by_kernel_[trace_][span.row] : kNone;
    if (collective != kNone && collectives_[collective].members.size() > 1) {
      const CollectiveRun& call = collectives_[collective];
      const CollectiveMember& last = call.members[call.last_arriver()];
      trace_ = last.trace;
      i = Rank().SpanOfKernel(last.kernel);
      Add(Cause::kTransfer, last.start, last.end, Rank().spans[i].name);
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
    const DeviceSpan& span = Rank().spans[i];
    const uint32_t before = Rank().Before(i);
    const int64_t free = before == kNone ? INT64_MIN : Rank().spans[before].end;
    const int64_t launched = span.launch == kNone ? INT64_MIN : HandedOver(Rank().trace, span);
    const int64_t ready = std::max(free, launched);
    if (ready == INT64_MIN) return kNone;
    const int64_t gap = span.start - ready;
    Add(gap < kLatencyNs ? Cause::kLatency : Cause::kDependency, ready, span.start);
    return launched > free ? FollowHost(launched) : before;
  }

  // What the host waited for that launched something at `time`.
  uint32_t FollowHost(int64_t time) {
    while (const DeviceReturn* const back = Rank().ReturnBefore(time)) {
      AddHost(back->returned, time);
      if (back->latest != kNone && Rank().spans[back->latest].end > back->called) {
        Add(Cause::kSync, Rank().spans[back->latest].end, back->returned);
        return back->latest;
      }
      AddHost(back->called, back->returned);
      if (back->called >= time) break;  // of no length
      time = back->called;
    }
    AddHost(std::min(time, Rank().trace.first_ns), time);
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
  const std::vector<std::vector<uint32_t>>& by_kernel_;
  std::vector<std::optional<RankOrder>> ranks_;  // made when the path comes there
  uint32_t trace_ = 0;
  std::vector<PathSegment> path_;
};

std::vector<PathSegment> WalkBack(const Run& run) {
  // The rank that worked last, by the clocks as collectives align them.
  const std::vector<ClockDifference> clocks = AlignClocks(run, MatchCollectives(run));
  std::optional<uint32_t> last_rank;
  double last = 0;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    const std::vector<DeviceSpan>& spans = DeviceTimeline(run.traces[t]);
    if (spans.empty()) continue;
    const int64_t end = std::ranges::max_element(spans, {}, &DeviceSpan::end)->end;
    const double offset =
        clocks[t].offset_ns + clocks[t].drift_ppm / 1e6 * static_cast<double>(end - clocks[t].at);
    const double common = static_cast<double>(end) - offset;
    if (last_rank && common <= last) continue;
    last_rank = t;
    last = common;
  }
  return last_rank ? Walk(run).From(*last_rank) : std::vector<PathSegment>();
}

}  // namespace

const std::vector<PathSegment>& FindCriticalPath(const Run& run) {
  struct CriticalPath {
    std::vector<PathSegment> path;
  };
  return run.memo.Get<CriticalPath>([&run] { return CriticalPath{WalkBack(run)}; }).path;
}

}  // namespace ranktap::collector

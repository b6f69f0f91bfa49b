#include "collector/facts/causes/critical_path.h"

#include <algorithm>
#include <optional>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_order.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/shared_clock.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kStreamGapNs = 5'000;  // within it the stream's order explains a start

// One rank's part of the graph.
struct RankOrder {
  RankOrder(const Trace& of, bool is_alone)
      : trace(of), spans(DeviceTimeline(of)), order(of, !is_alone), loading(DataLoading(of)) {}

  struct Work {
    uint32_t at = kNone;  // kNone: nothing
    int64_t end = INT64_MIN;
  };
  // What `i`, which started then, began after on the device.
  Work Before(uint32_t i, int64_t start) {
    const Work in_order = WorkAt(order.Before(i));
    if (in_order.at != kNone && in_order.end <= start && start - in_order.end <= kStreamGapNs) {
      return in_order;
    }
    const uint32_t latest = order.LastEnded(start, i);
    return latest == i ? in_order : WorkAt(latest);  // of no length: it ended at its own start
  }
  Work WorkAt(uint32_t i) const { return i == kNone ? Work() : Work{i, spans[i].end}; }
  // The last call that waited for the device and returned by `time`; null: none.
  const DeviceReturn* ReturnBefore(int64_t time) {
    const auto after = std::ranges::upper_bound(order.returns(), time, {}, &DeviceReturn::returned);
    return after == order.returns().begin() ? nullptr : &*std::prev(after);
  }

  const Trace& trace;
  const DeviceSpans& spans;
  NearbyOrder order;
  std::vector<Interval> loading;
};

class Walk {
 public:
  explicit Walk(const Run& run) : run_(run), ranks_(run.traces.size()), path_(run) {
    if (run.traces.size() < 2) return;  // nobody waits for another rank
    collectives_ = &MatchCollectives(run);
    by_work_ = &CollectivesByWork(run);
  }

  CriticalPath From(uint32_t trace) {
    trace_ = trace;
    const auto works = static_cast<uint32_t>(Rank().spans.size());
    path_.Reserve(works);
    uint32_t at = Rank().order.LastEnded(INT64_MAX, works);
    // Causes precede effects; matched wrongly, collectives could lead in a circle.
    size_t left = 0;
    for (const Trace& of : run_.traces)
      left += of.kernels.size() + of.copies.size() + of.events + 1;
    while (at != kNone && left-- > 0) at = Follow(at);
    return std::move(path_);
  }

 private:
  RankOrder& Rank() {
    if (!ranks_[trace_]) ranks_[trace_].emplace(run_.traces[trace_], run_.traces.size() == 1);
    return *ranks_[trace_];
  }
  uint32_t CollectiveAt(uint32_t work) {
    if (by_work_ == nullptr || Rank().spans[work].kind != WorkKind::kCommunication) return kNone;
    return (*by_work_)[trace_][work];
  }
  // Adds work `i`, of a collective what its last member had of it; returns the work for which its
  // start waited.
  uint32_t Follow(uint32_t i) {
    const uint32_t collective = CollectiveAt(i);
    if (collective != kNone) {
      const CollectiveRun& call = (*collectives_)[collective];
      trace_ = call.members[call.last_arriver()].trace;
      i = call.members[call.last_arriver()].work;
    }
    RankOrder& rank = Rank();
    const DeviceSpan& span = rank.spans[i];
    const auto [before, free] = rank.Before(i, span.start);
    const int64_t launched =
        span.launch == kNone ? INT64_MIN : HandedOver(rank.trace, span.launch, span.start);
    const int64_t ready = std::max(free, launched);
    if (span.table == DeviceSpan::Table::kGraphLaunch) {
      AddGraph(DeviceSpan(span), ready == INT64_MIN ? span.start : ready);
    } else {
      path_.AddWork(trace_, i, ready == INT64_MIN ? span.start : ready);
    }
    if (ready == INT64_MIN) return kNone;
    return launched > free ? FollowHost(launched, i) : before;
  }

  // What the host waited for that launched work `i` at `time`.
  uint32_t FollowHost(int64_t time, uint32_t i) {
    while (const DeviceReturn* const back = Rank().ReturnBefore(time)) {
      AddHost(back->returned, time);
      const uint32_t latest = Rank().order.LatestOf(*back, i);
      if (latest != kNone && Rank().spans[latest].end > back->called) {
        const int64_t ended = Rank().spans[latest].end;
        Add(Cause::kSync, ended, back->returned, back->returned - ended);
        return latest;
      }
      AddHost(back->called, back->returned);
      if (back->called >= time) break;  // of no length
      time = back->called;
    }
    AddHost(std::min(time, Rank().trace.first_ns), time);
    return kNone;
  }
  void AddHost(int64_t start, int64_t end) {
    const int64_t loading = Length(Within(Rank().loading, start, end));
    Add(Cause::kHost, start, end, end - start - loading);
    Add(Cause::kDataLoading, start, end, loading);
  }
  void AddGraph(const DeviceSpan& span, int64_t ready) {
    Add(Cause::kCompute, span.start, span.end, span.end - span.start,
        Rank().trace.graph_launches.graph.At(span.row));
    Add(GapBefore(span, ready), ready, span.start, span.start - ready);
  }
  void Add(Cause cause, int64_t start, int64_t end, int64_t ns, uint32_t graph = kNone) {
    if (ns > 0) path_.AddOther({trace_, cause, kNone, start, end, ns, graph});
  }

  const Run& run_;
  const std::vector<CollectiveRun>* collectives_ = nullptr;  // null: of one rank
  const std::vector<CollectiveOfWork>* by_work_ = nullptr;   // the same
  std::vector<std::optional<RankOrder>> ranks_;              // made when the path comes there
  uint32_t trace_ = 0;
  CriticalPath path_;
};

CriticalPath WalkBack(const Run& run) {
  if (run.traces.size() == 1 && !DeviceTimeline(run.traces[0]).empty()) return Walk(run).From(0);
  // The rank that worked last.
  const SharedClock& clock = SharedClockOf(run);
  uint32_t last_rank = kNone;
  int64_t last = INT64_MIN;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    for (const StreamWork& stream : WorkOfStreams(run.traces[t])) {
      const int64_t end = clock.At(t, stream.last_end);
      if (end <= last) continue;
      last_rank = t;
      last = end;
    }
  }
  return last_rank == kNone ? CriticalPath() : Walk(run).From(last_rank);
}

}  // namespace

CriticalPath::CriticalPath(const Run& run) {
  for (const Trace& trace : run.traces) timelines_.push_back(&DeviceTimeline(trace));
}

void CriticalPath::AddWork(uint32_t trace, uint32_t work, int64_t ready) {
  const Piece& piece = pieces_.emplace_back(Piece{ready, work, trace});
  if (!last_) ForEachOf(piece, [this](const PathSegment& segment) { last_ = segment; });
}

void CriticalPath::AddOther(const PathSegment& segment) {
  pieces_.push_back({.at = static_cast<uint32_t>(others_.size())});
  others_.push_back(segment);
  if (!last_) last_ = segment;
}

const CriticalPath& FindCriticalPath(const Run& run) {
  return run.memo.Get<CriticalPath>([&run] { return WalkBack(run); });
}

}  // namespace ranktap::collector

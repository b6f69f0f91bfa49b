// Gives each moment of a rank's devices its cause. A part of waterfall.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/facts/causes/explained_time.h"
#include "collector/facts/device_search.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Work that begins within it of its launch was launched in time: HTA's consecutive_kernel_delay.
inline constexpr int64_t kLatencyNs = 30'000;

// By trace: when a collective ran on its devices whose last member had not arrived. Worked out once
// and kept in the run's memo.
const std::vector<std::vector<Interval>>& WaitsForOtherRanks(const Run& run);

// The pauses that stop a host whether it has a device or not: checkpoints, garbage collection,
// loading. Worked out once and kept in the trace's memo.
const Explained& PausesOfHost(const Trace& trace);

// Adds what the host worked on: the optimizer, the backward and the forward pass.
void AddPasses(const Trace& trace, Explained* explained);

// All of this that is known of a host without a device: pauses, waits for other ranks, collectives,
// passes.
Explained ExplainHost(const Trace& trace, const HostCommunication& communication);

// When the host had given a piece of work to its device. A call that takes kLatencyNs or longer
// loads a module, compiles or makes room: it gives the work away as it returns, and the device that
// stands idle until then stands idle for the host.
// `launch`: its call; `start`: when it began.
[[gnu::always_inline]] inline int64_t HandedOver(const Trace& trace, uint32_t launch,
                                                 int64_t start) {
  if (launch == kNone) return start;
  const int64_t called = trace.api_calls.start[launch], returned = trace.api_calls.end[launch];
  return returned - called < kLatencyNs ? called : std::clamp(start, called, returned);
}

// When the host waited for the device, and when capture was off. Merged, by start.
std::vector<Interval> SyncIntervals(const Trace& trace);
std::vector<Interval> NotRecordedIntervals(const Trace& trace);

// Walks a set by times that only grow.
class SetCursor {
 public:
  explicit SetCursor(std::vector<Interval> set) : set_(std::move(set)) {}
  bool empty() const { return set_.empty(); }
  bool Holds(int64_t time) {
    while (at_ < set_.size() && set_[at_].second <= time) ++at_;
    return at_ < set_.size() && set_[at_].first <= time;
  }
  // The length of the interval that holds `time`; 0: none does.
  int64_t LengthAround(int64_t time) {
    return Holds(time) ? set_[at_].second - set_[at_].first : 0;
  }
  // Calls visit(start, end, whether the set holds there) for [start, end), piece by piece.
  template <typename Visit>
  void Split(int64_t start, int64_t end, Visit&& visit) {
    while (start < end) {
      const bool holds = Holds(start);
      if (holds && end <= set_[at_].second) return visit(start, end, true);
      const int64_t change = at_ == set_.size() ? end : holds ? set_[at_].second : set_[at_].first;
      const int64_t until = std::min(end, change);
      visit(start, until, holds);
      start = until;
    }
  }

 private:
  std::vector<Interval> set_;
  size_t at_ = 0;
};

// One pass over the work by start. Sets for each cause, and what is left of them without those
// above, took four times as long: most of it in pages written once.
template <typename Visit>
class DeviceSweep {
 public:
  DeviceSweep(const Trace& trace, const std::vector<Interval>& waits, int64_t first, int64_t last,
              Visit& visit)
      : trace_(trace),
        visit_(visit),
        at_(first),
        last_(last),
        waits_(waits),
        syncs_(SyncIntervals(trace)),
        off_(NotRecordedIntervals(trace)),
        pauses_(Explained(PausesOfHost(trace)).Take()) {}

  void Run(const DeviceSpans& spans) {
    uint32_t i = 0;
    for (const DeviceSpan& span : spans) {
      if (at_ >= last_) return;
      Pass(span, i++);
    }
    MoveTo(last_, kNone, kNone);
  }
  // The same for what lies about these windows alone: for all of each, and of work and idle time at
  // both ends as much as it takes to know their cause. Windows are by start. It pays where they are
  // a small part: the path comes to each of 64 ranks for a 64th of the time.
  void RunWithin(const DeviceSpans& spans, std::span<const Interval> windows) {
    const int64_t longest = LongestWork(trace_);
    size_t next = 0;  // span
    for (const auto& [start, end] : windows) {
      if (end <= at_) continue;
      const size_t after = FirstAfter(spans, start, next);
      if (after > 0 && spans[after - 1].start > at_) {  // not the same idle time, or work
        // Work that began longer ago than any takes is over.
        at_ = spans[after - 1].start;
        next = FirstAfter(spans, at_ - longest - 1, after);
        fronts_ = {};
      }
      for (; next < spans.size() && at_ < std::min(end, last_); ++next) {
        Pass(spans[next], static_cast<uint32_t>(next));
      }
      if (next == spans.size() && at_ < end) MoveTo(last_, kNone, kNone);
    }
  }

 private:
  // A span that begins, as place `i` of all.
  void Pass(const DeviceSpan& span, uint32_t i) {
    MoveTo(std::min(span.start, last_), span.launch, i);
    Front& front = fronts_[static_cast<size_t>(span.kind)];
    if (span.end > front.end) front = {span.end, i};
  }
  struct Front {
    int64_t end = INT64_MIN;  // of the work of one kind so far
    uint32_t span = kNone;    // that ends there
  };

  // Span `next`, launched by this call, begins at `until`.
  void MoveTo(int64_t until, uint32_t launch, uint32_t next) {
    while (at_ < until) {
      const int64_t from = at_;
      if (const Front& compute = Of(WorkKind::kCompute); from < compute.end) {
        at_ = std::min(until, compute.end);
        visit_(Cause::kCompute, from, at_, compute.span);
      } else if (const Front& transfer = Of(WorkKind::kCommunication); from < transfer.end) {
        at_ = std::min(until, transfer.end);
        waits_.Split(from, at_, [this, &transfer](int64_t start, int64_t end, bool waits) {
          visit_(waits ? Cause::kWait : Cause::kTransfer, start, end, transfer.span);
        });
      } else if (const Front& memory = Of(WorkKind::kMemory); from < memory.end) {
        at_ = std::min(until, memory.end);
        visit_(Cause::kMemory, from, at_, memory.span);
      } else {
        at_ = until;
        AddIdle(from, until, HandedOver(trace_, launch, until), next);
      }
    }
  }
  const Front& Of(WorkKind kind) const { return fronts_[static_cast<size_t>(kind)]; }

  // A wait costs what the host waited: had it not, it would have been ahead by that much. What
  // it does afterwards for longer is its own.
  void AddIdle(int64_t start, int64_t end, int64_t launched, uint32_t next) {
    const int64_t ready = std::clamp(launched, start, end);
    // An interval of SyncIntervals ends 1 ns after its call.
    const int64_t wait = std::max<int64_t>(syncs_.LengthAround(start) - 1, 0);
    const int64_t waited = std::min(ready, start + wait);
    AddHost(Cause::kSync, start, waited, next);
    AddHost(Cause::kHost, waited, ready, next);
    const Cause device = end - ready < kLatencyNs ? Cause::kLatency : Cause::kDependency;
    AddRecorded(ready, end, next, [this, device, next](int64_t from, int64_t until) {
      visit_(device, from, until, next);
    });
  }
  void AddHost(Cause cause, int64_t start, int64_t end, uint32_t next) {
    AddRecorded(start, end, next, [this, cause, next](int64_t from, int64_t until) {
      pauses_.Split(from, until, cause,
                    [this, next](int64_t a, int64_t b, Cause of) { visit_(of, a, b, next); });
    });
  }
  template <typename Recorded>
  void AddRecorded(int64_t start, int64_t end, uint32_t next, Recorded&& recorded) {
    if (start >= end) return;
    if (off_.empty()) {
      recorded(start, end);
      return;
    }
    off_.Split(start, end, [&](int64_t from, int64_t until, bool off) {
      off ? visit_(Cause::kNotRecorded, from, until, next) : recorded(from, until);
    });
  }

  const Trace& trace_;
  Visit& visit_;
  int64_t at_, last_;
  std::array<Front, 4> fronts_{};  // by kind
  SetCursor waits_, syncs_, off_;
  PieceCursor pauses_;
};

// Calls visit(cause, start, end, span) for all of [first, last), in the order of time. `span` of
// DeviceTimeline(trace) is what runs, or what an idle device runs next; kNone: nothing.
template <typename Visit>
void SweepDevice(const Trace& trace, const std::vector<Interval>& waits, int64_t first,
                 int64_t last, Visit&& visit) {
  DeviceSweep<Visit>(trace, waits, first, last, visit).Run(DeviceTimeline(trace));
}

// The same about some windows alone: see DeviceSweep.
template <typename Visit>
void SweepDeviceWithin(const Trace& trace, const std::vector<Interval>& waits,
                       std::span<const Interval> windows, int64_t first, int64_t last,
                       Visit&& visit) {
  DeviceSweep<Visit>(trace, waits, first, last, visit).RunWithin(DeviceTimeline(trace), windows);
}

}  // namespace ranktap::collector

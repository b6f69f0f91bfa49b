// The time of a rank's devices by the kinds of work that ran at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "collector/facts/device_timeline.h"

namespace ranktap::collector {

// A set of kinds; 0: nothing runs.
using KindSet = unsigned;
inline constexpr KindSet SetOf(WorkKind kind) { return 1u << static_cast<unsigned>(kind); }
inline constexpr KindSet kAllKinds = 15;

// Walks work by start, and calls visit(set, start, end) for the time from the first piece to the
// end of the last, with the kinds that run; the set changes from piece to piece. Work of other
// kinds than `kinds` is not there.
template <typename Visit>
class KindSweep {
 public:
  KindSweep(KindSet kinds, Visit& visit) : kinds_(kinds), visit_(visit) { ends_.fill(INT64_MIN); }
  void Run(const DeviceSpans& spans) {
    for (const DeviceSpan& span : spans) {
      if ((SetOf(span.kind) & kinds_) == 0 || span.end <= span.start) continue;
      if (!any_) at_ = since_ = span.start;
      any_ = true;
      MoveTo(span.start);
      int64_t& end = ends_[static_cast<size_t>(span.kind)];
      end = std::max(end, span.end);
    }
    if (!any_) return;
    MoveTo(*std::ranges::max_element(ends_));
    visit_(set_, since_, at_);
  }

 private:
  void MoveTo(int64_t until) {
    while (at_ < until) {
      KindSet set = 0;
      int64_t next = until;
      for (unsigned kind = 0; kind < ends_.size(); ++kind) {
        if (ends_[kind] <= at_) continue;
        set |= 1u << kind;
        next = std::min(next, ends_[kind]);
      }
      if (set != set_ && since_ < at_) {
        visit_(set_, since_, at_);
        since_ = at_;
      }
      set_ = set;
      at_ = next;
    }
  }

  const KindSet kinds_;
  Visit& visit_;
  std::array<int64_t, 4> ends_;  // of the work of one kind so far
  bool any_ = false;
  KindSet set_ = 0;  // from since_ to at_
  int64_t since_ = 0, at_ = 0;
};

template <typename Visit>
void SweepKinds(const DeviceSpans& spans, KindSet kinds, Visit&& visit) {
  KindSweep<Visit>(kinds, visit).Run(spans);
}

struct KindsAtOnce {
  std::array<int64_t, kAllKinds + 1> ns{};  // by set
  bool any = false;                         // work that takes time
  int64_t first = 0, last = 0;              // the start and the end of all work

  // The time in which at least these kinds ran.
  int64_t With(KindSet kinds) const {
    int64_t sum = 0;
    for (KindSet set = 0; set < ns.size(); ++set) {
      if ((set & kinds) == kinds) sum += ns[set];
    }
    return sum;
  }
};

KindsAtOnce KindsAtOnceOf(const DeviceSpans& spans);
// Of DeviceTimeline(trace). Worked out once and kept in the trace's memo.
const KindsAtOnce& KindsAtOnceOf(const Trace& trace);

}  // namespace ranktap::collector

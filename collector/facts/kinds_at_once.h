// The time of a rank's devices by the kinds of work that ran at once.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
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
  KindSweep(KindSet kinds, Visit& visit) : kinds_(kinds), visit_(visit) {}
  void Run(const DeviceSpans& spans) {
    for (const DeviceSpan& span : spans) {
      const KindSet kind = SetOf(span.kind);
      if ((kind & kinds_) == 0 || span.end <= span.start) continue;
      while (next_end_ < span.start) EndNext();
      int64_t& end = ends_[static_cast<size_t>(span.kind)];
      if ((set_ & kind) == 0) {
        while (next_end_ == span.start) EndNext();
        Change(span.start, set_ | kind);
        end = span.end;
        next_end_ = std::min(next_end_, end);
      } else if (end < span.end) {
        end = span.end;
        FindNextEnd();
      }
    }
    while (set_ != 0) EndNext();
  }

 private:
  void EndNext() {
    KindSet left = set_;
    for (KindSet rest = set_; rest != 0; rest &= rest - 1) {
      if (ends_[static_cast<size_t>(std::countr_zero(rest))] == next_end_) left ^= rest & -rest;
    }
    Change(next_end_, left);
    FindNextEnd();
  }
  void Change(int64_t time, KindSet set) {
    if (since_ < time) visit_(set_, since_, time);
    since_ = time;
    set_ = set;
  }
  void FindNextEnd() {
    next_end_ = INT64_MAX;
    for (KindSet rest = set_; rest != 0; rest &= rest - 1) {
      next_end_ = std::min(next_end_, ends_[static_cast<size_t>(std::countr_zero(rest))]);
    }
  }

  const KindSet kinds_;
  Visit& visit_;
  KindSet set_ = 0;                                   // what runs since_
  int64_t since_ = INT64_MAX, next_end_ = INT64_MAX;  // the first end of what runs
  std::array<int64_t, 4> ends_;                       // of the kinds that run
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

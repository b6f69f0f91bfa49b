// Maps one clock to CLOCK_MONOTONIC_RAW nanoseconds, piecewise linearly through readings of both.
//
// Between two readings a straight line; outside of them the nearest line goes on. Readings closer
// than kMinSegmentNs to their neighbour are left out: over a short line their error becomes slope.
// CLOCK_REALTIME may step: where two neighbouring readings are not parallel within kMaxDrift, each
// side keeps its own offset and the step lies at the later reading. Where a backward step makes a
// value appear twice, the later reading wins. Const member functions are thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ranktap::collector {

struct ClockPair {
  uint64_t from;  // ticks of the clock to map
  int64_t raw_ns;
};

enum class Steps { kNever, kPossible };

class ClockMap {
 public:
  // A clock that needs no mapping.
  ClockMap() = default;
  // A clock that may step counts nanoseconds (CLOCK_REALTIME): one reading is enough to map it. The
  // rate of one that never steps (the TSC) is known from two readings on.
  ClockMap(std::vector<ClockPair> pairs, Steps steps);

  int64_t Map(uint64_t ticks) const {
    size_t segment = 0;
    return Map(ticks, &segment);
  }
  // The same; `segment` remembers where the last value was found, which makes a sorted column cost
  // two comparisons and a multiplication each.
  int64_t Map(uint64_t ticks, size_t* segment) const {
    if (*segment >= segments_.size() || !Holds(*segment, ticks)) *segment = Find(ticks);
    return segments_[*segment].At(ticks);
  }
  // The last known rate, for durations in ticks.
  double ns_per_tick() const { return segments_.back().ns_per_tick; }
  // Steps found among the readings, in nanoseconds (for a note to people).
  const std::vector<int64_t>& steps() const { return steps_; }

 private:
  struct Segment {
    uint64_t begin = 0;  // of the values it holds
    uint64_t origin = 0;
    int64_t raw_ns = 0;
    double ns_per_tick = 1.0;

    int64_t At(uint64_t ticks) const {
      const double distance = static_cast<double>(static_cast<int64_t>(ticks - origin));
      const double ns = distance * ns_per_tick;
      return raw_ns + static_cast<int64_t>(ns < 0 ? ns - 0.5 : ns + 0.5);
    }
  };
  bool Holds(size_t segment, uint64_t ticks) const {
    return ticks >= segments_[segment].begin &&
           (segment + 1 == segments_.size() || ticks < segments_[segment + 1].begin);
  }
  size_t Find(uint64_t ticks) const;

  std::vector<Segment> segments_ = {Segment{}};
  std::vector<int64_t> steps_;
};

}  // namespace ranktap::collector

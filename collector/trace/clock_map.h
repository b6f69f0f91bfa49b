// Maps one clock to CLOCK_MONOTONIC_RAW nanoseconds, piecewise linearly through readings of both.
//
// Between two readings a straight line; outside of them the nearest line goes on. Readings closer
// than kMinSegmentNs to their neighbour are left out: over a short line their error becomes slope.
// CLOCK_REALTIME may step: where two neighbouring readings are not parallel within kMaxDrift, each
// side keeps its own offset and the step lies at the later reading. Where a backward step makes a
// value appear twice, the later reading wins. Const member functions are thread-safe.
#pragma once

#include <cmath>
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

  int64_t Map(uint64_t ticks) const { return LineOf(ticks).At(ticks); }

  // The straight line of some values: a copy, so that a loop over a column keeps it in registers.
  class Line {
   public:
    bool Holds(uint64_t ticks) const { return ticks - begin_ <= reach_; }
    int64_t At(uint64_t ticks) const {
      const double ns = static_cast<double>(static_cast<int64_t>(ticks - origin_)) * ns_per_tick_;
      return raw_ns_ + static_cast<int64_t>(ns + std::copysign(0.5, ns));
    }
    // The value that is raw_ns(), from which those that it holds are counted.
    uint64_t origin() const { return origin_; }
    int64_t raw_ns() const { return raw_ns_; }
    double ns_per_tick() const { return ns_per_tick_; }

   private:
    friend class ClockMap;
    uint64_t begin_, reach_, origin_;
    int64_t raw_ns_;
    double ns_per_tick_;
  };
  Line LineOf(uint64_t ticks) const;
  // The same as Map; `line` becomes that of the value where it is another's.
  int64_t Map(uint64_t ticks, Line* line) const {
    if (!line->Holds(ticks)) *line = LineOf(ticks);
    return line->At(ticks);
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
  };

  std::vector<Segment> segments_ = {Segment{}};
  std::vector<int64_t> steps_;
};

}  // namespace ranktap::collector

#include "collector/trace/clock_map.h"

#include <algorithm>
#include <cmath>

namespace ranktap::collector {
namespace {

// Crystals drift by some 100 ppm at most, and NTP slews by 500; a reading may be off by its spread
// of some microseconds.
constexpr double kMaxDrift = 1e-3;
constexpr double kMaxReadingErrorNs = 20'000;

// At 1 us of reading error this is 20 ppm of slope.
constexpr int64_t kMinSegmentNs = 50'000'000;

// Sorted by time, first and last kept, the others no closer than kMinSegmentNs.
std::vector<ClockPair> Thinned(std::vector<ClockPair> pairs) {
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const ClockPair& a, const ClockPair& b) { return a.raw_ns < b.raw_ns; });
  std::vector<ClockPair> kept;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const bool is_last = i + 1 == pairs.size();
    const bool too_close = !kept.empty() && pairs[i].raw_ns - kept.back().raw_ns < kMinSegmentNs;
    if (too_close && !is_last) continue;
    if (too_close && kept.size() > 1) kept.pop_back();
    kept.push_back(pairs[i]);
  }
  return kept;
}

}  // namespace

ClockMap::ClockMap(std::vector<ClockPair> pairs, Steps steps) {
  pairs = Thinned(std::move(pairs));
  if (pairs.empty()) return;
  // A short line says little; what may step is known to run at one nanosecond a nanosecond.
  const bool is_short = pairs.back().raw_ns - pairs.front().raw_ns < kMinSegmentNs;
  if (steps == Steps::kPossible && is_short) pairs.resize(1);
  double slope = 1.0;

  std::vector<Segment> segments;
  for (size_t i = 0; i + 1 < pairs.size(); ++i) {
    const ClockPair& here = pairs[i];
    const ClockPair& next = pairs[i + 1];
    const double raw = static_cast<double>(next.raw_ns - here.raw_ns);
    const double ticks = static_cast<double>(static_cast<int64_t>(next.from - here.from));
    const double expected = raw / slope;
    const double allowed = (raw * kMaxDrift + kMaxReadingErrorNs) / slope;
    if (ticks <= 0 || (steps == Steps::kPossible && std::abs(ticks - expected) > allowed)) {
      steps_.push_back(static_cast<int64_t>((ticks - expected) * slope));
      segments.push_back({here.from, here.from, here.raw_ns, slope});
      // Values that the first line would put behind the later reading came after the step.
      const auto landed = here.from + static_cast<uint64_t>(expected);
      if (ticks > expected) segments.push_back({landed, next.from, next.raw_ns, slope});
    } else {
      slope = raw / ticks;
      segments.push_back({here.from, here.from, here.raw_ns, slope});
    }
  }
  segments.push_back({pairs.back().from, pairs.back().from, pairs.back().raw_ns, slope});
  // After a backward step the later segments take over what they overlap.
  std::vector<Segment> kept;
  for (const Segment& segment : segments) {
    while (!kept.empty() && kept.back().begin >= segment.begin) kept.pop_back();
    kept.push_back(segment);
  }
  kept.front().begin = 0;
  segments_ = std::move(kept);
}

ClockMap::Line ClockMap::LineOf(uint64_t ticks) const {
  const auto after =
      std::upper_bound(segments_.begin(), segments_.end(), ticks,
                       [](uint64_t value, const Segment& s) { return value < s.begin; });
  const Segment& segment = after == segments_.begin() ? *after : *std::prev(after);
  const auto next = after == segments_.begin() ? std::next(after) : after;
  Line line;
  line.begin_ = segment.begin;
  line.reach_ = (next == segments_.end() ? UINT64_MAX : next->begin - 1) - segment.begin;
  line.origin_ = segment.origin;
  line.raw_ns_ = segment.raw_ns;
  line.ns_per_tick_ = segment.ns_per_tick;
  return line;
}

}  // namespace ranktap::collector

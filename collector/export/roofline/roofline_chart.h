// The picture of a roofline (Williams, Waterman and Patterson 2009): attained FLOP/s over
// intensity, both logarithmic, below the ceilings of the device. This room only draws; what the
// numbers are is collector/facts/roofline's to say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ranktap::collector {

struct ChartCeiling {
  std::string label;  // "bf16 tensor", "HBM"
  std::string type;   // the type whose points it bounds, as ChartPoint::type; empty: all (memory)
  bool is_memory = false;  // a slope of `peak` B/s, not a line of `peak` FLOP/s
  double peak = 0;         // FLOP/s or B/s; ceilings that are not above 0 are left out
  bool is_dashed = false;  // the maker's, beside others that were measured
};

struct ChartPoint {
  std::string label;
  std::string type;      // its colour: "bf16"
  double intensity = 0;  // FLOP/B
  double attained = 0;   // FLOP/s
  int64_t time_ns = 0;   // its area
  std::optional<uint32_t> rank;
  // More than its roof allows: a wrong count, a wrong type or a wrong peak. Drawn hollow.
  bool above_roof = false;
  // Not measured: what its roof would allow at best. Drawn hollow, in its colour.
  bool at_best = false;
  std::optional<double> bandwidth;  // B/s, of what it has to move
  std::string bound;                // "memory", as a report calls it; empty: unknown
  std::optional<double> roof;       // FLOP/s at its intensity
  std::optional<int64_t> saved_ns;  // if it met the roof
  // Its bytes are those that passed this level, as hardware counters say: "L1", "L2", "memory".
  // Empty: those of its shapes. Drawn as a mark of the level's own.
  std::string level;
};

struct RooflineChart {
  std::string title;
  std::vector<ChartCeiling> ceilings;
  std::vector<ChartPoint>
      points;  // in any order; those without a place on both axes are only counted
  std::vector<std::string> notes;  // sentences below the picture
};

// A picture of its own, without a script, without a reference to anything outside, light or dark as
// the viewer is. A point's name, numbers and mark are its <title>.
std::string DrawRooflineSvg(const RooflineChart& chart);

// The picture, and below it a table of all points. A Content-Security-Policy keeps it from loading
// anything.
std::string DrawRooflineHtml(const RooflineChart& chart);

}  // namespace ranktap::collector

// What the thread of a rank's steps ran, by its place in the step, without what it waited for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/facts/replay/job_graph.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct PlacedTime {
  int64_t begin = 0, end = 0;  // by the rank's own clock
  uint32_t place = 0;          // index into StepPlaces::names
};

struct StepPlaces {
  std::vector<std::string> names;               // "forward", "between two optimizers", ...
  std::vector<std::vector<PlacedTime>> pieces;  // by trace, within its steps, by begin
  std::vector<std::vector<int64_t>> ns;         // by trace and place, in a counted step
  std::vector<size_t> counted;                  // steps, by trace
  // Of a moment of a rank; kNone: in no step, or waiting.
  uint32_t At(uint32_t trace, int64_t time) const;
};

// Worked out once and kept in the run's memo.
const StepPlaces& StepPlacesOf(const Run& run);

}  // namespace ranktap::collector

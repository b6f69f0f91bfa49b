#pragma once

#include <cstdint>
#include <vector>

#include "collector/analysis/table.h"
#include "collector/trace/run_reader.h"

namespace ranktap::collector {

// One training step of one rank: from the end of an optimizer to the end of the next one.
struct StepRow {
  uint64_t number = 0;  // from 0
  int64_t start = 0, end = 0;
  int64_t forward_ns = 0;   // root modules running
  int64_t backward_ns = 0;  // the backward pass, where the hooks saw one
  int64_t optimizer_ns = 0;
  int64_t data_ns = 0;  // waiting for the data loader
  int64_t gpu_ns = 0;   // of work launched by the thread that trains while the step ran
};

// The finished steps of a trace, in order. The phases are those that began in the step.
std::vector<StepRow> FindSteps(const Trace& trace);

// How long does each training step take, and where does it go?
Table TabulateSteps(const Run& run);

}  // namespace ranktap::collector

// The Python functions around operators, as a timeline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// A function from the start of the first operator that it, or what it called, ran to the end of the
// last. Calls in a row with nothing else between are one: operators' stacks do not tell them apart.
struct PythonFunction {
  int64_t start = 0, end = 0;
  std::string name;         // "train.py: step"
  uint32_t line = 0;        // at the first operator; 0: not known
  uint32_t parent = kNone;  // row of the function that called it
  uint16_t writer = 0;
};

// Makes them of the stacks that operators have in a capture with `--stacks all`; by start, callers
// first. None goes on over a step whose operators are not recorded.
std::vector<PythonFunction> PythonFunctions(const Trace& trace);

}  // namespace ranktap::collector

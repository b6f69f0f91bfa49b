// The forwards of a model's modules, whoever recorded them.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct ModuleSpan {
  int64_t start = 0, end = 0;
  uint32_t name = 0;  // Dictionary::String: Root.path
  uint16_t writer = 0;
  uint16_t depth = 0;  // modules of the writer that were open when this one began
};

// By start: the ranges of the agent's hooks, else the calls of modules in a file of torch.profiler
// (with_stack=True). Worked out once and kept in the trace's memo.
const std::vector<ModuleSpan>& ModuleSpans(const Trace& trace);

}  // namespace ranktap::collector

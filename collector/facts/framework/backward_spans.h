// The backward passes of modules on the timeline.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct BackwardSpan {
  int64_t start = 0, end = 0;
  uint32_t module = 0;  // Dictionary::String: Root.path of the innermost module
  uint16_t writer = 0;
};

// One for each stretch of backward operators of a thread whose forwards one module made
// (PlaceOperators), from the first one's start to the last one's end; by start. There is none where
// operators were not recorded, and of collectives.
std::vector<BackwardSpan> BackwardSpans(const Trace& trace);

}  // namespace ranktap::collector

// How files of other tools number threads.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "collector/trace/model.h"

namespace ranktap::collector {

// Kineto wants thread ids positive.
inline int32_t ThreadOf(const Trace& trace, uint16_t writer) {
  return writer < trace.writers.size() ? std::abs(trace.writers[writer].thread) : 0;
}

}  // namespace ranktap::collector

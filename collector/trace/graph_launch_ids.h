// Graph launches whose correlation ids CUPTI is known to get wrong.
#pragma once

#include <cstdint>

#include "collector/trace/model.h"

namespace ranktap::collector {

// The host time from which on correlation ids of work inside graphs, and of graphs as a whole, are
// not to be believed: the end of the first gap of a capture by CUPTI 13.0 or 13.1. INT64_MAX:
// never. Needs `hello` and `gaps`.
int64_t GraphIdsWrongFrom(const Trace& trace);

}  // namespace ranktap::collector

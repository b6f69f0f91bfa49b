// Work of a timeline, looked for by time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collector/facts/device_timeline.h"

namespace ranktap::collector {

// How long one piece of the timeline takes at most, in ns: what began longer ago is over.
int64_t LongestWork(const Trace& trace);

// The place of the first piece that begins after `time`; size(): none does. Quick where it is near
// place `near`.
size_t FirstAfter(const DeviceSpans& spans, int64_t time, size_t near);

}  // namespace ranktap::collector

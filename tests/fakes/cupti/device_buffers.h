// The device memory in which CUPTI times what a device does. It is not taken back from the nodes of
// graphs, as seen with CUPTI 13.0 (parcagpu#23): once a context's buffers are full, nodes come
// without times.
#pragma once

#include <cstdint>

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

// DEVICE_BUFFER_POOL_LIMIT, in each context.
void SetDeviceBufferLimit(uint64_t most);
// Whether this work has its times. Takes memory of its device where that needs more.
bool HoldsTimes(const Operation& operation);

}  // namespace ranktap::standin

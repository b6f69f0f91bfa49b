// The client's own correlation ids: one stack per thread and kind.
#pragma once

#include <cstdint>

namespace ranktap::standin {

// A record for the top of every stack of this thread that is not empty.
void WriteExternalCorrelations(uint32_t correlation);

}  // namespace ranktap::standin

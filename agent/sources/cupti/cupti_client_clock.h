// The clock that the program's own client wants its records in. PyTorch's profiler gives CUPTI one
// at every session: the processor's ticks. CUPTI cannot be given its old one back. Versions answer
// a change in different ways: kernels without times (12.6 to 13.0), the first ones after it in the
// clock before. So CUPTI is not told: it keeps CLOCK_REALTIME, for both of us, and the client's
// buffers are put into the client's clock as they are handed to it.
// Runs on: the program's threads and CUPTI's, in what they do for the client.  May not: run in
// callbacks of ours.
#pragma once

#include <cstddef>
#include <cstdint>

#include "agent/sources/cupti/cupti_api.h"

namespace ranktap::agent::cupti::client_clock {

using Clock = uint64_t (*)();

// From now on. nullptr: CUPTI's own.
void Set(Clock clock);
// nullptr: none was set.
Clock Get();

// Whether we know where the times of such records are, or that there are none.
bool KnowsTimesOf(uint32_t kind);

// Changes the times in a full buffer of the client's: by lines through the clocks' readings at Set,
// at earlier buffers and now, since CLOCK_REALTIME's rate is not even. A time of 0 is none, and
// stays. Nothing is done where no clock was set.
void Translate(const Api& api, uint32_t version, uint8_t* buffer, size_t valid_bytes);

}  // namespace ranktap::agent::cupti::client_clock

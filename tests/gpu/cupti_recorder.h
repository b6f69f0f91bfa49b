// The recorder's parts: cupti_recorder.cc is CUPTI's client, cupti_recorder_client.cc stands
// between the program's own profiler and CUPTI.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/sources/cupti/cupti_api.h"

namespace ranktap::gpu {

// The one libcupti; opened at the first call.
const agent::cupti::LoadedApi& RecordedCupti();

// A buffer that CUPTI has completed, whoever lent it. Any thread.
void RecordBuffer(void* context, uint32_t stream, uint8_t* buffer, size_t valid_bytes);
void RecordClientCall(const std::string& text);

// Gives CUPTI up for good: the program's own profiler wants it. Nothing where that was done.
void YieldRecorder();

}  // namespace ranktap::gpu

// Streams that the host told to wait for an event (cudaStreamWaitEvent).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct StreamWait {
  int64_t called = 0;   // by the host
  uint32_t on = kNone;  // the stream on which the event was recorded last; kNone: not known
};

// By the number of the stream that waits, then by the time of the call. From event calls, where
// the trace says which stream a handle is, and from synchronisation records.
std::map<uint32_t, std::vector<StreamWait>> StreamWaits(const Trace& trace);

// The last wait of `stream` that was called after `since` and before `until`.
std::optional<StreamWait> WaitBetween(const std::map<uint32_t, std::vector<StreamWait>>& waits,
                                      uint32_t stream, int64_t since, int64_t until);

}  // namespace ranktap::collector

// The work that the devices still had when the recording began: a host that runs ahead leaves them
// work whose launches nobody recorded.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "collector/facts/device_timeline.h"

namespace ranktap::collector {

struct Backlog {
  // On a device's stream, when the first work begins whose launch is known. Work runs in the order
  // of its launches there. Only streams on which the host launched before its first step was over:
  // where launches are missing for longer, work without one may be any step's.
  std::map<std::pair<uint32_t, uint32_t>, int64_t> first_known;

  // Inlined, where other fields than `launch` are read for few.
  [[gnu::always_inline]] bool Holds(const DeviceSpan& span) const {
    return span.launch == kNone && BeginsBefore(span.device, span.stream, span.start);
  }

 private:
  bool BeginsBefore(uint32_t device, uint32_t stream, int64_t start) const {
    const auto known = first_known.find({device, stream});
    return known != first_known.end() && start < known->second;
  }
};

// Worked out once and kept in the trace's memo.
const Backlog& BacklogOf(const Trace& trace);

}  // namespace ranktap::collector

// Host calls that return when the device has come to some point.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

inline bool WaitsForDevice(std::string_view api) {
  for (const std::string_view part : {"Synchronize", "EventQuery"}) {
    if (api.find(part) != api.npos) return true;
  }
  return api == "cudaMemcpy" || api == "hipMemcpy" || api == "hipMemcpyWithStream";
}

// By Dictionary::Api id; ask at min(id, size - 1).
inline std::vector<bool> ApisThatWait(const Trace& trace) {
  std::vector<bool> waits(trace.dictionary.apis() + 1);
  for (uint32_t id = 0; id < trace.dictionary.apis(); ++id) {
    waits[id] = WaitsForDevice(trace.dictionary.Api(id).name);
  }
  return waits;
}

// By row of api_calls: a copy that had ended when the call which launched it returned. So behaves a
// "cudaMemcpyAsync" of pageable memory, and whatever a driver makes synchronous.
inline std::vector<bool> CallsThatSawTheirCopyEnd(const Trace& trace) {
  const ApiCalls& calls = trace.api_calls;
  const Copies& copies = trace.copies;
  std::vector<bool> saw(calls.size()), did_not(calls.size());
  for (size_t i = 0; i < copies.size(); ++i) {
    const uint32_t launch = copies.launch[i];
    if (launch == kNone || copies.start[i] == kUntimed) continue;
    (copies.end[i] <= calls.end[launch] ? saw : did_not)[launch] = true;
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    if (!saw[i]) continue;
    // A graph's launch may outlive one of its copies.
    const bool copies_only =
        trace.dictionary.Api(calls.api[i]).name.find("Memcpy") != std::string::npos;
    if (did_not[i] || !copies_only) saw[i] = false;
  }
  return saw;
}

// visit(table, row) for each call that waits by its name or by what it did.
template <typename Visit>
void ForEachSyncCall(const Trace& trace, Visit&& visit) {
  const std::vector<bool> waits = ApisThatWait(trace);
  const std::vector<bool> blocks = CallsThatSawTheirCopyEnd(trace);
  for (const ApiCalls* const calls :
       {&trace.api_calls, static_cast<const ApiCalls*>(&trace.event_calls)}) {
    for (size_t i = 0; i < calls->size(); ++i) {
      const bool by_name = waits[std::min<size_t>(calls->api[i], waits.size() - 1)];
      if (by_name || (calls == &trace.api_calls && blocks[i])) visit(*calls, i);
    }
  }
}

}  // namespace ranktap::collector

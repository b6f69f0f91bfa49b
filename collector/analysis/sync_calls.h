// Host calls that return when the device has come to some point.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

inline bool WaitsForDevice(std::string_view api) {
  for (const std::string_view part : {"Synchronize", "cudaEventQuery"}) {
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

// visit(table, row) for each of them.
template <typename Visit>
void ForEachSyncCall(const Trace& trace, Visit&& visit) {
  const std::vector<bool> waits = ApisThatWait(trace);
  for (const ApiCalls* const calls :
       {&trace.api_calls, static_cast<const ApiCalls*>(&trace.event_calls)}) {
    for (size_t i = 0; i < calls->size(); ++i) {
      if (waits[std::min<size_t>(calls->api[i], waits.size() - 1)]) visit(*calls, i);
    }
  }
}

}  // namespace ranktap::collector

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

// Rows of calls that wait, by their names or by what they did.
struct SyncCalls {
  std::vector<uint32_t> api_calls, event_calls;
};

inline SyncCalls FindSyncCalls(const Trace& trace) {
  const std::vector<bool> waits = ApisThatWait(trace);
  const std::vector<bool> blocks = CallsThatSawTheirCopyEnd(trace);
  const auto waits_by_name = [&waits](const ApiCalls& calls, size_t i) {
    return waits[std::min<size_t>(calls.api[i], waits.size() - 1)];
  };
  SyncCalls found;
  for (uint32_t i = 0; i < trace.api_calls.size(); ++i) {
    if (blocks[i] || waits_by_name(trace.api_calls, i)) found.api_calls.push_back(i);
  }
  for (uint32_t i = 0; i < trace.event_calls.size(); ++i) {
    if (waits_by_name(trace.event_calls, i)) found.event_calls.push_back(i);
  }
  return found;
}

// visit(table, row) for each of them. They are worked out once and kept in the trace's memo.
template <typename Visit>
void ForEachSyncCall(const Trace& trace, Visit&& visit) {
  const SyncCalls& found = trace.memo.Get<SyncCalls>([&trace] { return FindSyncCalls(trace); });
  for (const uint32_t i : found.api_calls) visit(trace.api_calls, size_t{i});
  const ApiCalls& event_calls = trace.event_calls;
  for (const uint32_t i : found.event_calls) visit(event_calls, size_t{i});
}

}  // namespace ranktap::collector

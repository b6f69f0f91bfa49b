// Host calls that return when the device has come to some point.
#pragma once

#include <algorithm>
#include <string>
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

// Rows of api_calls, in order: of calls whose copy had ended when they returned. So behaves a
// "cudaMemcpyAsync" of pageable memory, and whatever a driver makes synchronous.
inline std::vector<uint32_t> CallsThatSawTheirCopyEnd(const Trace& trace) {
  const ApiCalls& calls = trace.api_calls;
  const Copies& copies = trace.copies;
  std::vector<uint32_t> saw, did_not;
  for (size_t i = 0; i < copies.size(); ++i) {
    const uint32_t launch = copies.launch[i];
    if (launch == kNone || copies.start[i] == kUntimed) continue;
    (copies.end[i] <= calls.end[launch] ? saw : did_not).push_back(launch);
  }
  for (std::vector<uint32_t>* const rows : {&saw, &did_not}) {
    if (!std::ranges::is_sorted(*rows)) std::ranges::sort(*rows);
  }
  std::erase_if(saw, [&](uint32_t call) {
    // A graph's launch may outlive one of its copies.
    return std::ranges::binary_search(did_not, call) ||
           trace.dictionary.Api(calls.api[call]).name.find("Memcpy") == std::string::npos;
  });
  return saw;
}

// Rows of calls that wait, by their names or by what they did.
struct SyncCalls {
  std::vector<uint32_t> api_calls, event_calls;
};

inline SyncCalls FindSyncCalls(const Trace& trace) {
  const std::vector<bool> waits = ApisThatWait(trace);
  SyncCalls found;
  const auto find = [&waits](const ApiCalls& calls, std::vector<uint32_t>* rows) {
    for (uint32_t i = 0; i < calls.size(); ++i) {
      if (waits[std::min<size_t>(calls.api[i], waits.size() - 1)]) rows->push_back(i);
    }
  };
  find(trace.api_calls, &found.api_calls);
  find(trace.event_calls, &found.event_calls);
  const std::vector<uint32_t> blocked = CallsThatSawTheirCopyEnd(trace);
  std::vector<uint32_t>& rows = found.api_calls;
  rows.insert(rows.end(), blocked.begin(), blocked.end());
  std::ranges::sort(rows);
  rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  return found;
}

// An API call that a record of synchronisation is of.
struct CallOfRecord {
  uint32_t row = 0, correlation = 0;
};

inline std::vector<CallOfRecord> FindCallsOfSyncRecords(const Trace& trace) {
  const Column<uint32_t>& named = trace.syncs.correlation;
  std::vector<uint32_t> ids(named.begin(), named.end());
  std::ranges::sort(ids);
  std::vector<CallOfRecord> calls;
  // Ids mostly count up: a search for each call took longer than all else here.
  size_t at = 0;
  for (uint32_t row = 0; row < trace.api_calls.size() && !ids.empty(); ++row) {
    const uint32_t id = trace.api_calls.correlation[row];
    const bool is_at = (at == ids.size() || ids[at] >= id) && (at == 0 || ids[at - 1] < id);
    if (!is_at) at = static_cast<size_t>(std::ranges::lower_bound(ids, id) - ids.begin());
    if (at < ids.size() && ids[at] == id) calls.push_back({row, id});
  }
  return calls;
}

// By row. Worked out once and kept in the trace's memo.
inline const std::vector<CallOfRecord>& CallsOfSyncRecords(const Trace& trace) {
  return trace.memo.Get<std::vector<CallOfRecord>>(
      [&trace] { return FindCallsOfSyncRecords(trace); });
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

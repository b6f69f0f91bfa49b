// The tables of events of an nsys file -> rows of the traces' tables.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "collector/import/nsys/nsys_process.h"
#include "collector/import/nsys/sqlite_reader.h"
#include "collector/import/optional_values.h"

namespace ranktap::collector {

// Times count from the session's start: years of them are a damaged row.
inline constexpr int64_t kFarthestTime = int64_t{1} << 61;

struct NsysTarget {
  SqlReader* file;
  const NsysStrings* strings;
  std::function<NsysProcess*(int64_t global_id)> process_of;     // of a globalPid or a globalTid
  std::function<NsysProcess*(int64_t global_id)> known_process;  // nullptr: no event was of it
  std::map<std::string, uint64_t>* skipped;                      // rows, by what was wrong
  bool is_ours = false;  // `ranktap export` wrote it, which numbers memory as CUPTI does
};

// Kernels, copies, memsets, graph launches, synchronisation, allocations.
void ReadNsysDevices(const NsysTarget& target);
// API calls, NVTX, overheads.
void ReadNsysHost(const NsysTarget& target);

// The times of a row, in its first two columns; false: they are none, and the row is counted.
bool ReadSpan(const SqlRow& row, const NsysTarget& target, int64_t* start, int64_t* end);

}  // namespace ranktap::collector

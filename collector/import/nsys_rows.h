// The tables of events of an nsys file -> rows of the traces' tables.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "collector/import/nsys_process.h"
#include "collector/import/sqlite_reader.h"

namespace ranktap::collector {

struct NsysTarget {
  SqlReader* file;
  const NsysStrings* strings;
  std::function<NsysProcess*(int64_t global_id)> process_of;  // of a globalPid or a globalTid
  std::map<std::string, uint64_t>* skipped;                   // rows, by what was wrong
};

// Kernels, copies, memsets, graph launches, synchronisation, allocations.
void ReadNsysDevices(const NsysTarget& target);
// API calls, NVTX, overheads.
void ReadNsysHost(const NsysTarget& target);

// The times of a row, in its first two columns; false: they are none, and the row is counted.
bool ReadSpan(const SqlRow& row, const NsysTarget& target, int64_t* start, int64_t* end);

// A value of an optional column, which is as long as its last value that is not 0.
template <typename T, typename Value>
void SetOptional(OptionalColumn<T>* column, size_t row, Value value) {
  if (value == Value{}) return;
  column->PadTo(row);
  column->push_back(static_cast<T>(value));
}

}  // namespace ranktap::collector

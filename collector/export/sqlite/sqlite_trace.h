// One trace's part of an SQLite export.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/export/export_options.h"
#include "collector/export/sqlite/sqlite_table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// StringIds: every text once.
class SqlStrings {
 public:
  int64_t IdOf(std::string_view text);
  std::string_view Text(int64_t id) const { return texts_[static_cast<size_t>(id)]; }
  SqlTable Table() const;

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, int64_t> ids_;
};

struct SqlTraceTarget {
  SqlFile* file;
  SqlStrings* strings;
  int64_t global_pid;     // nsys': machine << 48 | pid << 24
  int64_t shift_ns;       // to be added to the trace's times
  ExportOptions options;  // the window on the trace's own clock
};

// Kernels, copies, memsets, graph launches, synchronisation, allocations.
void AppendDeviceTables(const Trace& trace, const SqlTraceTarget& target);
// API calls, NVTX, thread names, overheads.
void AppendHostTables(const Trace& trace, const SqlTraceTarget& target);

}  // namespace ranktap::collector

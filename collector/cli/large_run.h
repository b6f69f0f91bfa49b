// Whether a run fits into memory, asked before it is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collector/cli/run_selection.h"
#include "collector/report/options.h"
#include "collector/trace/load/run_reader.h"
#include "collector/trace/processors.h"

namespace ranktap::collector {

// Bytes that this process may still take: what the machine has free, or less by the limits of the
// control groups (version 2) that it is in. `root` is where /proc and /sys lie.
uint64_t FreeMemory(const std::string& root = "");

struct RunRoom {
  bool fits = true;
  // What it takes and what to leave out: where it takes much of what is free, too. Else empty.
  std::string sentence;
  // Whether a trace file is to be loaded; empty: all are. Only where the run takes much: what is
  // said of a whole run ("2 jobs are in this run") needs all of it.
  std::function<bool(const std::string& file)> wants;
};

// By the headers of the blocks of a run's traces. Of other tools' files nothing is known. Of single
// tables (`names_tables`) and of some steps it is known only what the loaded run takes at least.
// `at_once`: how many ranks are worked on at a time.
RunRoom RoomFor(const std::vector<std::string>& paths, const RunSelection& selection,
                bool names_tables, uint64_t free_bytes, size_t at_once = ProcessorCount());

// Once the filters are done: gives back what no report asks for with these options, 4.7 B an event.
// These are the correlation ids of device work and of API calls, whose launches and records of
// synchronisation are joined, and the launches' shapes.
void DropUnread(const ReportOptions& options, Run* run);
// The same as each trace is loaded, where nothing is filtered; else it does nothing.
LeaveOut DropsUnread(const ReportOptions& options, const RunSelection& selection);

// Gives the pages of all columns back to the kernel on all processors, when all is printed: nobody
// may read a column after it. As a process ends, the kernel takes them back on one.
void ReturnColumns(Run* run);

}  // namespace ranktap::collector

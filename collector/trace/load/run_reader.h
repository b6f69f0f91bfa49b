// A run (a directory of traces) or a single trace file, opened for reading.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "collector/file/result.h"
#include "collector/file/run_info.h"
#include "collector/trace/load/spare_columns.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct RunFiles {
  std::string path;
  RunInfo info;  // default-constructed where there is no run.json
  bool has_info = false;
  std::vector<std::string> traces;    // paths: *.trace and *.trace.part, ranks in order
  std::vector<std::string> problems;  // run.json unreadable, a file it names missing, ...
};

// The kind of what lies at `path`, without opening the traces.
Result<RunFiles> FindTraces(const std::string& path);

// Loads every trace, or those whose path `wants` holds for, several at a time. Fails when there is
// none. `leave_out` may take columns that nobody will ask for out of a loaded trace, and give their
// memory to the next ones; it is called from several threads.
using WantsTrace = std::function<bool(const std::string& path)>;
using LeaveOut = std::function<void(Trace* trace, SpareColumns* spare)>;
Result<Run> LoadRun(const std::string& path, const WantsTrace& wants = {},
                    const LeaveOut& leave_out = {});

// Merges what run.json and the trace itself say; the trace is asked first.
void Describe(const RunInfo& run, Trace* trace);

}  // namespace ranktap::collector

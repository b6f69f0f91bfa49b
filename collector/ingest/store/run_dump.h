// The copying of a dump: kept files of each process -> one file, in a run directory of its own.
// Reads files that nobody writes or removes meanwhile. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/file/run_info.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

struct RunDump {
  FileDescriptor directory;  // the run's
  std::string path;
  uid_t owner = 0;
  RunInfo info;  // of the dump, but for its traces
  // By process: its files in their order, and what is known of it.
  struct Process {
    std::vector<std::string> files;
    TraceInfo info;
  };
  std::map<std::string, Process> processes;
  uint64_t begin_realtime_ns = 0, end_realtime_ns = 0;
};

// Leaves nothing behind where it fails.
v1::Dump WriteDump(RunDump dump);

}  // namespace ranktap::collector

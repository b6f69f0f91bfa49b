// `verify`: is every byte of a trace what was written, does every event have its place, and do the
// counts add up? Reads through trace_reader.h like everybody else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collector/file/result.h"
#include "collector/file/trace_reader.h"
#include "ranktap/v1/trace.pb.h"

namespace ranktap::collector {

// Where one writer's events of this file lie, and what the agent says it produced.
struct CheckedWriter {
  uint64_t first_event = 0, next_event = 0;  // the file holds (or declares lost) [first, next)
  uint64_t stored = 0, declared_lost = 0;
  bool has_account = false;
  v1::Account account;
  uint64_t offset = 0;  // of the block with its last frame
};

struct TraceCheck {
  std::string path;
  std::string session;  // hex
  uint64_t blocks = 0, frames = 0, events = 0, bytes = 0;
  uint64_t lost = 0;  // declared, by the agent and by the collector
  bool closed = false;
  v1::Ending ending;
  bool dropped_before = false;  // --keep dropped what came before this file
  uint64_t dropped_events = 0;  // how much, where this file is the process's first
  std::map<uint32_t, CheckedWriter> writers;
  // Each problem, with the offset of the block it was found in.
  std::vector<Damage> problems;
  // Checks that could not be made, and why.
  std::vector<std::string> notes;

  bool ok() const { return problems.empty(); }
};

// Everything that can be said of one file alone.
Result<TraceCheck> CheckTrace(const std::string& path);

// Checks each file, and that the files of one process together hold its events from the first to
// the last. `problems`: of the directory.
struct RunCheck {
  std::vector<TraceCheck> traces;
  std::vector<std::string> problems;
  bool ok() const;
};
Result<RunCheck> CheckRun(const std::string& path);

}  // namespace ranktap::collector

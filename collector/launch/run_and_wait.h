// A helper program that a verb starts and waits for: DuckDB's, or our own `run`. Not for a user's
// command of `run`, whose signals are passed through (child_process.h). Owns no thread.
#pragma once

#include <string>
#include <vector>

#include "collector/file/result.h"

namespace ranktap::collector {

// `command[0]` is a path. `output`: the descriptor that its standard output goes to. Its exit
// status as a shell has it; fails where it could not be started.
Result<int> RunAndWait(const std::vector<std::string>& command, int output = 1);

struct ProgramOutput {
  int status = 0;
  std::string output, complaints;  // standard output and error
};
// The same with what it prints, and /dev/null to read. Killed, and a failure, after `most_ms` or
// `most_bytes`.
Result<ProgramOutput> RunAndRead(const std::vector<std::string>& command, int most_ms,
                                 size_t most_bytes);

}  // namespace ranktap::collector

// Runs in directories below one.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ranktap::collector {

// "runs/a holds later runs too: runs/a/ranktap-train-20261122-101500", where `path` is a run whose
// name `run -o` was given again; nothing where it holds none.
std::optional<std::string> LaterRunsIn(const std::string& path);

// Says so on stderr, of each of them.
void TellOfLaterRuns(const std::vector<std::string>& paths);

}  // namespace ranktap::collector

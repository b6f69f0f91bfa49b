// Runs in directories below one.
#pragma once

#include <string>
#include <vector>

namespace ranktap::collector {

// The last run in `path`, a run whose name `run -o` was given again:
// "runs/a/ranktap-train-20261122-101500". `path` itself where it holds none, and where it ends in
// "/.".
std::string LastRunIn(const std::string& path);

// The same of each path; says on stderr which run is taken.
std::vector<std::string> LastRunsIn(const std::vector<std::string>& paths);

}  // namespace ranktap::collector

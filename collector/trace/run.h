// The ranks of one job, in memory.
#pragma once

#include <string>
#include <vector>

#include "collector/file/run_info.h"
#include "collector/trace/memo.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

struct Run {
  std::string path;
  RunInfo info;
  std::vector<Trace> traces;          // in the order of their ranks; without a rank, last
  std::vector<std::string> problems;  // also: traces that could not be opened
  Memo memo;                          // as Trace::memo, of all traces
};

}  // namespace ranktap::collector

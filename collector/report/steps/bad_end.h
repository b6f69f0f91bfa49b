// How a program ended, where it did not end well: a report's first words.
#pragma once

#include <string>

#include "collector/trace/run.h"

namespace ranktap::collector {

// "Rank 1 ended with ValueError: the labels do not fit, at train.py(31): main. "; of several ranks
// the first one. "It was killed by signal 9 (SIGKILL). ", "The command exited with 3. ". Empty:
// nothing says that it ended badly.
std::string DescribeEnd(const Run& run);
// "The command exited with 3. "
std::string DescribeEnd(const RunInfo& info);

}  // namespace ranktap::collector

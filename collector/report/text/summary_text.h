// What `ranktap run` prints when the command has ended.
#pragma once

#include <cstddef>
#include <string>

#include "collector/file/run_info.h"
#include "collector/report/run_summary.h"

namespace ranktap::collector {

// `width` 0: not a terminal, a common width is taken.
std::string FormatSummary(const RunSummary& summary, const RunInfo& info, const std::string& path,
                          size_t width);

}  // namespace ranktap::collector

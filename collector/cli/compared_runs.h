// What `diff` and `baseline` are given: runs, files of other tools, and baselines that hold several
// runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collector/report/gate/run_figures.h"

namespace ranktap::collector {

inline constexpr size_t kLargestBaseline = size_t{64} << 20;

// nullopt, after a complaint: one of them could not be opened. A path that is a baseline stands for
// all of its runs.
std::optional<std::vector<RunFigures>> FiguresAt(const std::vector<std::string>& paths);

}  // namespace ranktap::collector

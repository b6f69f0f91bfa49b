// What `diff` and `baseline` are given: runs, files of other tools, and baselines that hold several
// runs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "collector/report/gate/run_figures.h"

namespace ranktap::collector {

// Where `ranktap baseline` writes unless it is told another folder.
inline constexpr const char* kBaselinesFolder = "ranktap-baselines";

// nullopt, after a complaint: one of them could not be opened. A path that is a baseline stands for
// all of its runs.
std::optional<std::vector<RunFigures>> FiguresAt(const std::vector<std::string>& paths);

// The baselines of a folder by name. `error`: why it could not be listed.
std::map<std::string, Baseline> BaselinesIn(const std::string& folder, std::error_code* error);

}  // namespace ranktap::collector

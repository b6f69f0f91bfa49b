// CLI11, the same way for every verb.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ranktap::collector {

// Parses; an exit status where the verb is done already: help was asked for, or the usage is wrong.
std::optional<int> ParseArguments(CLI::App* app, std::vector<std::string> arguments);

}  // namespace ranktap::collector

// Finds the module of this process that exports a function, by the modules' own hash tables.
// Runs on: the arming and drain threads.  May not: run in a hook; open a module (a constructor that
// waits for us holds the loader's lock).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ranktap::agent {

// The path of the first loaded module that defines and exports `symbol`, but for those whose file
// name begins with one of `except`; empty for the program itself.
std::optional<std::string> FindExporter(std::string_view symbol,
                                        std::span<const std::string_view> except);

}  // namespace ranktap::agent

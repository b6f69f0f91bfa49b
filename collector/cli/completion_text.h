// Completion scripts for shells, made from the registries: verbs, their options, reports, formats.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/terminal/arguments.h"

namespace ranktap::collector {

struct CompletedVerb {
  std::string name, help;
  std::vector<Arguments::Description> options;
  std::vector<std::string> words;  // that may follow beside files: reports
};

// The options of each verb, as its own declaration says them.
std::vector<CompletedVerb> CompletedVerbs();

std::string BashCompletion(const std::vector<CompletedVerb>& verbs);
std::string ZshCompletion(const std::vector<CompletedVerb>& verbs);
std::string FishCompletion(const std::vector<CompletedVerb>& verbs);

}  // namespace ranktap::collector

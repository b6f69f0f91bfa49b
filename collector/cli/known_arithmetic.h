// --flops-of and --compiled: what a person knows of operators beside the formulas.
#pragma once

#include <string>
#include <vector>

#include "collector/terminal/arguments.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct KnownArithmeticOptions {
  std::vector<std::string> flops_of;  // "NAME=EXPRESSION"
  std::vector<std::string> compiled;  // folders
};

void AddKnownArithmeticOptions(Arguments* app, KnownArithmeticOptions* options);

// After the run was filtered. False, after a complaint: an expression or a folder cannot be read.
bool TakeKnownArithmetic(const KnownArithmeticOptions& options, const Run& run);

}  // namespace ranktap::collector

#pragma once

#include <optional>
#include <span>
#include <string>

#include "collector/export/export_options.h"
#include "collector/file/result.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Folded stacks, "outermost;...;innermost;[kernel] count" a line, for flamegraph.pl, speedscope and
// the like. Weights are nanoseconds: of the GPU work that a call launched, under its kernel's name,
// or of the call itself where it launched none. Calls without a stack are under "(no stack)".
// The ranks' stacks are under "rank N". Needs Trace::symbols.
std::optional<Failure> WriteFolded(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path);

}  // namespace ranktap::collector

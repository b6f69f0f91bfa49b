// The chrome export of a trace that torch.profiler wrote: its file's own events. Fields that the
// model has no place for (hardware counters, other vendors' fields) stay, and nothing is added.
#pragma once

#include <optional>
#include <string>

#include "collector/export/export_options.h"
#include "collector/file/result.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// Whether `path` can get a copy: the trace's file is a whole Kineto file, is not `path` itself, and
// `options` ask for a selection of its events at most.
bool CanCopyKineto(const Trace& trace, const ExportOptions& options, const std::string& path);

// Writes the trace's file to `path` with the events that `options` keep, on the trace's clock, and
// the arrows whose ends they keep; all else as it stands there.
std::optional<Failure> CopyKineto(const Trace& trace, const ExportOptions& options,
                                  const std::string& path);

}  // namespace ranktap::collector

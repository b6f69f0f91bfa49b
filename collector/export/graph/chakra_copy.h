// The export of an .et file to .et: its own nodes.
#pragma once

#include <optional>
#include <string>

#include "collector/export/export_options.h"
#include "collector/file/result.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// Whether `path` can get a copy: the trace's file is a whole .et, not `path` itself, and all of it
// is asked for.
bool CanCopyChakra(const Trace& trace, const ExportOptions& options, const std::string& path);

// Nodes, edges and attributes as they stand there, but for what readers stumble over: METADATA
// nodes, at which ASTRA-sim aborts (those that depended on one depend on what it did),
// dependencies on nodes that are not in the file, a missing is_cpu_op, and sends without a peer,
// which are replayed. Ids stay where they are dense from 1.
std::optional<Failure> CopyChakra(const Trace& trace, const ExportOptions& options,
                                  const std::string& path);

}  // namespace ranktap::collector

#pragma once

#include <optional>
#include <span>
#include <string>

#include "collector/export/export_options.h"
#include "collector/file/result.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// An SQLite file with the tables and columns of `nsys export --type sqlite`, all ranks in one: the
// queries that people have for those run on it. Times are nanoseconds after the run's first event,
// which TARGET_INFO_SESSION_START_TIME gives; table RANKTAP_RANKS says which globalPid is which
// rank.
std::optional<Failure> WriteSqlite(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path);

}  // namespace ranktap::collector

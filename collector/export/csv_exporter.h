#pragma once

#include <optional>
#include <span>
#include <string>

#include "collector/export/export_options.h"
#include "collector/file/result.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// One line for each thing that lasts (and each mark), all ranks in one file: what pandas, DuckDB
// and spreadsheets take without a schema. Times are nanoseconds after the run's first event.
std::optional<Failure> WriteCsv(const Run& run, std::span<const Trace* const> traces,
                                const ExportOptions& options, const std::string& path);

}  // namespace ranktap::collector

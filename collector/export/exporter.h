// The exporters: traces in another tool's format. They convert and do not aggregate.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collector/export/export_options.h"
#include "collector/file/result.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct Exporter {
  std::string_view name;       // as in --format
  std::string_view help;       // one line
  std::string_view extension;  // of a file: ".json"
  bool ranks_in_one_file;      // false: a file for each trace
  // Writes `traces` of the run to a new file at `path`; one trace where not ranks_in_one_file.
  std::optional<Failure> (*write)(const Run& run, std::span<const Trace* const> traces,
                                  const ExportOptions& options, const std::string& path);
  bool needs_symbols = false;  // reads Trace::symbols
};

std::span<const Exporter> AllExporters();
// nullptr: there is none of this name.
const Exporter* FindExporter(std::string_view name);

}  // namespace ranktap::collector

// The exporters: a trace in another tool's format. They convert and do not aggregate.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collector/export/output_file.h"
#include "collector/trace/run_reader.h"

namespace ranktap::collector {

struct Exporter {
  std::string_view name;       // as in --format
  std::string_view help;       // one line
  std::string_view extension;  // of a file: ".json"
  // Writes one trace of the run.
  void (*write)(const Run& run, const Trace& trace, OutputFile* file);
};

std::span<const Exporter> AllExporters();
// nullptr: there is none of this name.
const Exporter* FindExporter(std::string_view name);

}  // namespace ranktap::collector

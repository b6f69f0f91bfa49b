// The exporters: traces in another tool's format. They convert and do not aggregate.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collector/export/export_options.h"
#include "collector/file/result.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Bits of Exporter::heeds.
inline constexpr uint32_t kNoOption = 0;
inline constexpr uint32_t kHtaNames = 1;    // ExportOptions::hta_compat, ranges_as_operators
inline constexpr uint32_t kGpuStages = 2;   // render_stages
inline constexpr uint32_t kArrows = 4;      // tensor_arrows
inline constexpr uint32_t kPieces = 8;      // split_bytes
inline constexpr uint32_t kRooflines = 64;  // roofline
inline constexpr uint32_t kDataSet = 16;    // run_name, replace_run; writes a folder
inline constexpr uint32_t kReplayed = 32;   // replayed_operator

struct Exporter {
  std::string_view name;       // as in --format
  std::string_view help;       // one line
  std::string_view extension;  // of a file: ".json"
  bool ranks_in_one_file;      // false: a file for each trace
  // Writes `traces` of the run to a new file at `path`; one trace where not ranks_in_one_file. With
  // kDataSet `path` is a folder, which may hold other runs.
  std::optional<Failure> (*write)(const Run& run, std::span<const Trace* const> traces,
                                  const ExportOptions& options, const std::string& path);
  uint32_t heeds = kNoOption;  // the options that only some formats know
  bool needs_symbols = false;  // reads Trace::symbols
  bool makes_folder = false;   // `path` is a folder, of whatever files
  // What a rank's file in a folder is called, "host.#.json" with the rank for the '#'; empty: as
  // the trace.
  std::string_view rank_file = {};
};

std::span<const Exporter> AllExporters();
// nullptr: there is none of this name.
const Exporter* FindExporter(std::string_view name);
// "chrome, perfetto": the formats that heed an option.
std::string FormatsThatHeed(uint32_t option);

}  // namespace ranktap::collector

// One exported file as several, none larger than a viewer holds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collector/export/exporter.h"

namespace ranktap::collector {

// Cuts by time: each piece is a whole file of its format with what starts in its part of the
// window, "run.json" as "run.000.json", "run.001.json"; one that fits keeps its name. The limit is
// of uncompressed bytes. A piece whose events all start at one moment may be larger; the size of
// what names processes and threads counts in every piece. Returns the files written, in the order
// of time.
Result<std::vector<std::string>> WriteSplit(const Exporter& exporter, const Run& run,
                                            std::span<const Trace* const> traces,
                                            const ExportOptions& options, const std::string& path,
                                            uint64_t limit_bytes);

}  // namespace ranktap::collector

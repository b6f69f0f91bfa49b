// Memory by category over time, as torch.profiler's export_memory_timeline writes it.
#pragma once

#include "collector/export/exporter.h"

namespace ranktap::collector {

// Of the first device that is named, by the end of the file's name: ".html" a picture of the curves
// (SVG where torch has a PNG; at most a moment a pixel, that with most memory), ".raw..." rows of
// [ns, action, bytes, category], else [[us], [[0, bytes by category]]].
std::optional<Failure> WriteMemoryTimeline(const Run& run, std::span<const Trace* const> traces,
                                           const ExportOptions& options, const std::string& path);

}  // namespace ranktap::collector

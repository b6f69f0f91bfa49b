// torch.cuda.memory._snapshot() as a pickle: torch.cuda._memory_viz, pytorch.org/memory_viz.
#pragma once

#include "collector/export/exporter.h"

namespace ranktap::collector {

// Segments hold what was alive at the end; an allocator's own are not known, so neighbours of less
// than kNeighbour bytes apart make one. Traces have every allocation and release, of what was there
// before the first only the release. The device of a GPU is its index; the CPU comes after them.
// Frames are the Python stack where there is one, else the operator, the module and the category.
inline constexpr uint64_t kNeighbour = 1 << 20;
std::optional<Failure> WriteMemorySnapshot(const Run& run, std::span<const Trace* const> traces,
                                           const ExportOptions& options, const std::string& path);

}  // namespace ranktap::collector

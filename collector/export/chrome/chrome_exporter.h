#pragma once

#include <optional>
#include <span>
#include <string>

#include "collector/export/export_options.h"
#include "collector/file/result.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The JSON that Kineto writes, field by field (docs/formats: the Kineto dialect): what HTA,
// TensorBoard, chrome://tracing and Perfetto read. One trace a file. NVTX ranges are
// user_annotation; a start/end range, which may overlap others on its thread, is a pair of async
// events.
//
// ExportOptions::hta_compat: kernels of NCCL have the names of NCCL 2.18 and before
// (ncclKernel...), by which HTA's straggler analysis knows them, and our steps are annotations
// ProfilerStep#N, by which its analyses of iterations do, where the trace has none.
std::optional<Failure> WriteChrome(const Run& run, std::span<const Trace* const> traces,
                                   const ExportOptions& options, const std::string& path);

}  // namespace ranktap::collector

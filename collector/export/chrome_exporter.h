#pragma once

#include "collector/export/output_file.h"
#include "collector/trace/run_reader.h"

namespace ranktap::collector {

// The JSON that Kineto writes, field by field (docs/formats: the Kineto dialect): what HTA,
// TensorBoard, chrome://tracing and Perfetto read. NVTX ranges are user_annotation; a start/end
// range, which may overlap others on its thread, is a pair of async events.
void WriteChrome(const Run& run, const Trace& trace, OutputFile* file);

}  // namespace ranktap::collector

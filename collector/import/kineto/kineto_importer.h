// A trace of torch.profiler (Kineto), or any Chrome JSON trace with its categories -> the model.
#pragma once

#include <string>

#include "collector/file/result.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// Reads PATH (.json, gzip or not) in pieces of a few megabytes. What is readable is read; what is
// not is skipped up to the next event and listed in Trace::damage with its offset in the
// uncompressed text. Times are as in the file, plus baseTimeNanoseconds, minus Trace::base_time_ns.
// Fails when the file cannot be opened or holds no trace events.
Result<Trace> ImportKineto(const std::string& path);

}  // namespace ranktap::collector

// What torch tells of its allocator in files of their own: snapshots and memory timelines.
#pragma once

#include <string>

#include "collector/file/result.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// torch.cuda.memory._dump_snapshot(): a pickle. Allocations with their stacks, of all GPUs of the
// process. What was allocated before its history begins comes first, at the history's first moment.
Result<Trace> ImportMemorySnapshot(const std::string& path);

// profile.export_memory_timeline("X.raw.json.gz"): [time, action, bytes, category] rows of one
// device, which the file does not name. What existed before comes first, at the first moment.
Result<Trace> ImportMemoryTimeline(const std::string& path);

}  // namespace ranktap::collector

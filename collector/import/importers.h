// The reader of each foreign format; registry.cc lists them. Each reads all that is readable, skips
// the rest and lists it in Trace::damage. Each fails with a sentence that names the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collector/file/result.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// A trace of torch.profiler (Kineto), or any Chrome JSON trace with its categories; gzip or not.
// Read in pieces of a few megabytes; offsets of damage are in the uncompressed text. Times are as
// in the file, plus baseTimeNanoseconds, minus Trace::base_time_ns.
// A file into which a script joined several ranks' is a trace for each, where it put the rank in
// front of every pid ("rank0_4000", "1_4001"); else it is refused.
bool LooksLikeKineto(std::string_view head);
Result<std::vector<Trace>> ImportKineto(const std::string& path);
// TraceInfo::rank_origin of those.
inline constexpr std::string_view kRankInPids = "pids of a joined file";

// Files of `nsys export --type sqlite`, and our own sqlite export. A trace for each process in the
// file, by their ids. Ranks are known where the file has our own table RANKTAP_RANKS. Times count
// from the start of the session. Damage is in the first trace.
bool LooksLikeNsys(std::string_view head);
Result<std::vector<Trace>> ImportNsys(const std::string& path);

// torch.cuda.memory._dump_snapshot(): a pickle. Allocations with their stacks, of all GPUs of the
// process. Memory allocated before its history begins comes first, at the history's first moment.
bool LooksLikeMemorySnapshot(std::string_view head);
Result<Trace> ImportMemorySnapshot(const std::string& path);

// profile.export_memory_timeline("X.raw.json.gz"): [time, action, bytes, category] rows of one
// device, which the file does not name. Memory that existed before comes first, at the first
// moment.
bool LooksLikeMemoryTimeline(std::string_view head);
Result<Trace> ImportMemoryTimeline(const std::string& path);

// A dump of PyTorch's Flight Recorder: the pickle of _dump_nccl_trace and _dump_fr_trace, or their
// JSON, which has no stacks. The rank is the number that ends the file's name.
bool LooksLikeFlightRecorder(std::string_view head);
Result<Trace> ImportFlightRecorder(const std::string& path);

// Files of PyTorch's ExecutionTraceObserver, schemas 1.0.1 to 1.1.1-chakra.0.0.4, and the linked
// file that chakra_trace_link makes of one. The first has no times: rows then stand in their order,
// and the origin is kExecution. Tensors, process groups and collectives are as they stand there.
bool LooksLikeExecutionTrace(std::string_view head);
Result<Trace> ImportExecutionTrace(const std::string& path);

// Chakra's .et: varint-delimited protobuf, gzip or not. Process groups are also read from the
// comm_group.json beside it.
bool LooksLikeChakra(std::string_view head);
Result<Trace> ImportChakra(const std::string& path);

}  // namespace ranktap::collector

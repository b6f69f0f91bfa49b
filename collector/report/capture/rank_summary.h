#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankRow {
  TraceInfo info;
  std::string device;          // of most of its work: "0 NVIDIA H100"; empty: none
  std::optional<double> busy;  // percent of the time from first to last device work; none: no work
  int64_t kernels = 0, copies = 0, memsets = 0, graph_launches = 0;
  int64_t kernel_ns = 0;
  int64_t api_calls = 0, api_ns = 0;
  int64_t ranges = 0, unfinished_ranges = 0;
  int64_t launches_without_kernel = 0;  // GPU records that never reached a ring
  int64_t span_ns = 0;                  // from its first event to its last
  uint64_t events = 0;
  uint64_t lost = 0;
  size_t damaged = 0;  // places in the file that could not be read
  // The rank's last doings before it ended.
  std::string last_launch, last_collective, last_range, open_call, open_range;
  // ranktap's own cost to the rank.
  int64_t cost_cpu_ns = 0;       // threads of ranktap's own
  int64_t cost_callback_ns = 0;  // on the program's threads, estimated from samples
};

// What ran on a device is not known: of a capture at level ranges, of a file with NVTX alone.
bool HasRangesAlone(const Trace& trace);

// A device gave out memory and has no work in the file: torch.profiler without
// ProfilerActivity.CUDA, with profile_memory.
bool HasDeviceMemoryAlone(const Trace& trace);

// Why a trace has no work of a device: "nothing ran on a device", or its launches' records are not
// in the file, or nobody recorded anything but ranges.
std::string_view WhyNoWork(const Trace& trace);

// The same of a run whose traces have none: "the work of 260 launches is not in this file", or
// `otherwise`.
std::string WhyNoWork(const Run& run, std::string_view otherwise = "nothing ran on a device");

// Worked out once and kept in the trace's memo.
const RankRow& SummarizeRank(const Trace& trace);

}  // namespace ranktap::collector

// The table of contents of collector/report: one line a report.
#include "collector/report/report.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

constexpr Report kReports[] = {
    {"ranks", "What did each rank do, and how did it end?", &TabulateRanks},
    {"verdict", "What did the job lose most to?", &TabulateVerdict},
    {"waterfall", "Where did the mean step go, in causes that add up?", &TabulateWaterfall},
    {"waterfall-by-rank", "The same on each rank", &TabulateWaterfallByRank},
    {"steps", "How long did each step take, and where did it go?", &TabulateSteps},
    {"stragglers", "Which ranks do the others wait for, and why?", &TabulateStragglers},
    {"comm", "How long does communication take, how much is waiting, how fast is the rest?",
     &TabulateComm},
    {"groups", "Which process groups are there, of which ranks?", &TabulateGroups},
    {"critical-path", "Which chain of work did the end of the run wait for, over all ranks?",
     &TabulateCriticalPath},
    {"align", "How far apart are the ranks' clocks?", &TabulateAlignment},
    {"temporal", "How much do the devices compute, do something else, or nothing?",
     &TabulateTemporal, kHtaCompat},
    {"idle", "Why were the streams idle?", &TabulateIdle, kHtaCompat},
    {"overlap", "How much communication hides behind computation?", &TabulateOverlap, kHtaCompat},
    {"types", "What kinds of work ran, alone or together?", &TabulateWorkTypes, kHtaCompat},
    {"kernels", "Where does GPU time go, by kernel?", &TabulateKernels, kHtaCompat},
    {"ops", "Where does time go, by framework operator (torch's key_averages)?", &TabulateOps,
     kByShape | kByStack | kByModule},
    {"patterns", "Which sequences of kernels recur, on streams and in operators?",
     &TabulatePatterns, kHtaCompat | kOperator | kMinLength},
    {"launches", "How long do launches take, and how late does the work begin?", &TabulateLaunches,
     kHtaCompat},
    {"launches-by-kernel", "How long does each kernel take from its launch to its end?",
     &TabulateLaunchesByKernel},
    {"queue", "How much launched work waits on each stream?", &TabulateQueue, kHtaCompat},
    {"bandwidth", "How fast are copies and memsets?", &TabulateBandwidth, kHtaCompat},
    {"copies", "What is copied and set, and how fast?", &TabulateCopies},
    {"syncs", "Where does the host wait for the device, and what does it cost?", &TabulateSyncs},
    {"usage", "How much of its time does each device run kernels (as MegEngine)?", &TabulateUsage},
    {"usage-over-time", "The same, window by window", &TabulateUsageOverTime},
    {"devices", "How did clocks, power, temperature and memory of the devices go?",
     &TabulateDevices},
    {"apis", "Where does the host spend its time in CUDA calls?", &TabulateApis},
    {"ranges", "How long do the program's NVTX ranges take, on the host and on the GPU?",
     &TabulateRanges, kHtaCompat},
    {"range-kernels", "Which kernels does each range launch?", &TabulateRangeKernels},
    {"range-projection", "How long do the devices work for each range, from first to last?",
     &TabulateRangeProjection},
    {"range-trace", "When was each range open, within which other, and when did its work run?",
     &TabulateRangeTrace},
    {"modules", "Where does the forward pass go, module by module?", &TabulateModules, kModelFacts},
    {"throughput", "How many samples a second, and how much of the peak (MFU, HFU)?",
     &TabulateThroughput, kModelFacts},
    {"flop-check", "Do our FLOPs agree with PyTorch's FlopCounterMode (run --flop-check)?",
     &TabulateFlopCheck},
    {"parameters", "What is each module made of: parameters, gradients, optimizer state, by dtype?",
     &TabulateParameters},
    {"stacks", "Where in the program do CUDA calls come from?", &TabulateCallSites, kNothing, true},
    {"graphs", "What ran in CUDA graphs, and which line put it there?", &TabulateGraphs, kNothing,
     true},
    {"memory", "How much memory was given out, at most and at the end?", &TabulateMemory},
    {"memory-peak", "What held the memory at its peak?", &TabulateMemoryPeak, kByStack},
    {"memory-modules", "Which modules held it, and what for?", &TabulateMemoryModules},
    {"memory-steps", "How much did each step need, save for its backward and leave behind?",
     &TabulateMemorySteps},
    {"memory-over-time", "How much was held from moment to moment, by category?",
     &TabulateMemoryOverTime, kSampleRate},
    {.name = "diff",
     .question = "What takes longer in RUN2 than in RUN1 (report RUN1 RUN2 diff)?",
     .compare = &TabulateDiff},
    {"losses", "Which events are missing, and why?", &TabulateLosses},
    {"losses-by-writer", "Which thread's events are missing?", &TabulateLossesByWriter},
    {"cost", "What did ranktap itself cost, and did it keep to its budget?", &TabulateCost},
    {"windows", "Which windows were captured, and how far apart did the ranks begin and end?",
     &TabulateWindows},
    {"gaps", "When was capture off on purpose, and why?", &TabulateGaps},
};

// What `nsys stats`, its rules and recipes call a table that answers the same question.
struct NsysName {
  std::string_view nsys, ours;
};
constexpr NsysName kNsysNames[] = {
    {"cuda_api_sum", "apis"},
    {"cuda_api_sync", "syncs"},
    {"cuda_gpu_kern_sum", "kernels"},
    {"cuda_gpu_mem_size_sum", "copies"},
    {"cuda_gpu_mem_time_sum", "copies"},
    {"cuda_gpu_time_util_map", "usage-over-time"},
    {"cuda_kern_exec_sum", "launches-by-kernel"},
    {"gpu_gaps", "idle"},
    {"gpu_time_util", "usage-over-time"},
    {"nccl_gpu_overlap_trace", "overlap"},
    {"nccl_sum", "comm"},
    {"nvtx_gpu_proj_sum", "range-projection"},
    {"nvtx_gpu_proj_trace", "range-trace"},
    {"nvtx_kern_sum", "range-kernels"},
    {"nvtx_pushpop_sum", "ranges"},
    {"nvtx_pushpop_trace", "range-trace"},
    {"nvtx_startend_sum", "ranges"},
    {"nvtx_sum", "ranges"},
};

}  // namespace

std::span<const Report> AllReports() { return kReports; }

const Report* FindReport(std::string_view name) {
  for (const NsysName& known : kNsysNames) {
    if (known.nsys == name) name = known.ours;
  }
  for (const Report& report : kReports) {
    if (report.name == name) return &report;
  }
  return nullptr;
}

std::string NamesThatHeed(uint32_t option) {
  std::string names;
  for (const Report& report : kReports) {
    if ((report.heeds & option) == 0) continue;
    names += (names.empty() ? "" : ", ") + std::string(report.name);
  }
  return names;
}

}  // namespace ranktap::collector

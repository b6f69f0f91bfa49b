// The table of contents of collector/report: one line a report.
#include <iterator>

#include "collector/report/report.h"
#include "collector/report/reports.h"

#include <algorithm>

namespace ranktap::collector {
namespace {

constexpr Report kReports[] = {
    {"ranks", "What did each rank do, and how did it end?", &TabulateRanks},
    {"verdict", "What did the job lose most to?", &TabulateVerdict},
    {"insights", "What costs time, where, and what to do about it?", &TabulateInsights, kNothing,
     true},
    {"key-figures", "How long is a step, how busy are the devices, how much memory at most?",
     &TabulateKeyFigures, kModelFacts},
    {"waterfall", "Where did the mean step go, in causes that add up?", &TabulateWaterfall},
    {"waterfall-by-rank", "The same on each rank", &TabulateWaterfallByRank},
    {"steps", "How long did each step take, and where did it go?", &TabulateSteps},
    {"stragglers", "Which ranks do the others wait for, and why?", &TabulateStragglers},
    {"pace", "When does each rank reach its k-th step, range or kernel, and who falls behind?",
     &TabulatePace, kOperator},
    {"comm", "How long does communication take, how much is waiting, how fast is the rest?",
     &TabulateComm},
    {"rank-pairs", "What do two ranks exchange, and how long does one wait for the other?",
     &TabulateRankPairs},
    {"groups", "Which process groups are there, of which ranks?", &TabulateGroups},
    {"critical-path", "Which chain of work did the end of the run wait for, over all ranks?",
     &TabulateCriticalPath},
    {"align", "How far apart are the ranks' clocks?", &TabulateAlignment},
    {"temporal", "How much do the devices compute, do something else, or nothing?",
     &TabulateTemporal, kHtaCompat},
    {"idle", "Why were the streams idle?", &TabulateIdle, kHtaCompat},
    {"overlap", "How much communication hides behind computation?", &TabulateOverlap, kHtaCompat},
    {"types", "What kinds of work ran, alone or together?", &TabulateWorkTypes, kHtaCompat},
    {"kernels", "Where does GPU time go, by kernel?", &TabulateKernels,
     kHtaCompat | kByGrid | kKernelNames},
    {"kernel-histogram", "How many calls of each kernel take how long, in bins?",
     &TabulateKernelHistogram},
    {"ops", "Where does time go, by framework operator (torch's key_averages)?", &TabulateOps,
     kByShape | kByStack | kByModule | kTopLevel},
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
    {"modules", "Where does the forward pass go, module by module?", &TabulateModules,
     kModelFacts | kPeakFlops},
    {"layers", "What does each layer take, return, compute and move in one forward (torchstat)?",
     &TabulateLayers},
    {"throughput", "How many samples a second, and how much of the peak (MFU, HFU)?",
     &TabulateThroughput, kModelFacts | kPeakFlops},
    {"roofline", "How far from its limit is each operator, and is that compute or memory?",
     &TabulateRoofline, kRoofs | kPeakFlops},
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

// What `nsys stats` and its recipes call a table that answers the same question.
struct NsysName {
  std::string_view nsys, ours;
};
constexpr NsysName kNsysNames[] = {
    {"cuda_api_sum", "apis"},
    {"cuda_gpu_kern_gb_sum", "kernels"},
    {"cuda_gpu_kern_hist", "kernel-histogram"},
    {"cuda_gpu_kern_pace", "pace"},
    {"cuda_gpu_kern_sum", "kernels"},
    {"cuda_gpu_mem_size_sum", "copies"},
    {"cuda_gpu_mem_time_sum", "copies"},
    {"cuda_gpu_time_util_map", "usage-over-time"},
    {"cuda_kern_exec_sum", "launches-by-kernel"},
    {"nccl_gpu_overlap_trace", "overlap"},
    {"nccl_sum", "comm"},
    {"nvtx_gpu_proj_sum", "range-projection"},
    {"nvtx_gpu_proj_trace", "range-trace"},
    {"nvtx_kern_sum", "range-kernels"},
    {"nvtx_pace", "pace"},
    {"nvtx_pushpop_sum", "ranges"},
    {"nvtx_pushpop_trace", "range-trace"},
    {"nvtx_startend_sum", "ranges"},
    {"nvtx_sum", "ranges"},
};

// What an nsys name says beside the table's: "cuda_gpu_kern_sum:base". False: nothing that is
// known.
bool SetAsNsys(std::string_view name, std::string_view argument, ReportOptions* options) {
  options->by_grid |= name == "cuda_gpu_kern_gb_sum";
  if (argument.empty()) return true;
  const bool is_of_kernels = name == "cuda_gpu_kern_sum" || name == "cuda_gpu_kern_gb_sum";
  if (!is_of_kernels || (argument != "base" && argument != "mangled")) return false;
  options->kernel_names = *KernelNamesNamed(argument);
  return true;
}

// The rules of `nsys analyze`: each is a rule of ours, asked alone.
constexpr std::string_view kNsysRuleNames[] = {"cuda_api_sync",    "cuda_memcpy_async",
                                               "cuda_memcpy_sync", "cuda_memset_sync",
                                               "gpu_gaps",         "gpu_time_util"};

template <size_t kRule>
constexpr Report NsysRule() {
  return {"insights", "What does the rule of this name in nsys analyze find?",
          [](const Run& run, const ReportOptions&) {
            return TabulateInsightsNamed(run, kNsysRuleNames[kRule]);
          },
          kNothing, true};
}
constexpr Report kNsysRules[] = {NsysRule<0>(), NsysRule<1>(), NsysRule<2>(),
                                 NsysRule<3>(), NsysRule<4>(), NsysRule<5>()};

}  // namespace

std::span<const Report> AllReports() { return kReports; }

const Report* FindReport(std::string_view name, ReportOptions* options) {
  ReportOptions as_nsys = options == nullptr ? ReportOptions() : *options;
  const size_t colon = std::min(name.find(':'), name.size());
  for (const NsysName& known : kNsysNames) {
    if (known.nsys != name.substr(0, colon)) continue;
    const std::string_view argument = name.substr(std::min(colon + 1, name.size()));
    if (!SetAsNsys(known.nsys, argument, &as_nsys)) return nullptr;
    if (options != nullptr) *options = as_nsys;
    name = known.ours;
    break;
  }
  for (size_t i = 0; i < std::size(kNsysRules); ++i) {
    if (kNsysRuleNames[i] == name) return &kNsysRules[i];
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

// The table of contents of collector/report: one line a report.
#include <algorithm>
#include <iterator>

#include "collector/facts/roofline/roofline_rows.h"
#include "collector/report/former_names.h"
#include "collector/report/hang/hang_summary.h"
#include "collector/report/host/host_lines.h"
#include "collector/report/host/host_steps.h"
#include "collector/report/host/host_threads.h"
#include "collector/report/insights/finding_summary.h"
#include "collector/report/report.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

constexpr Report kReports[] = {
    {ReportGroup::kRanks, "ranks", "What did each rank do, and how did it end?", &TabulateRanks},
    {ReportGroup::kTime, "verdict", "What did the job lose most to?", &TabulateVerdict},
    {ReportGroup::kTime, "insights", "What costs time, where, and what to do about it?",
     &TabulateInsights, kNothing, true},
    {ReportGroup::kTime, "findings", "What do all rules say, for a program that reads it?",
     &TabulateFindings, kNothing, true},
    {ReportGroup::kTime, "key-figures",
     "How long is a step, how busy are the devices, how much memory at most?", &TabulateKeyFigures,
     kModelFacts},
    {ReportGroup::kTime, "waterfall", "Where did the mean step go, in causes that add up?",
     &TabulateWaterfall, kBy},
    {ReportGroup::kTime, "steps", "How long did each step take, and where did it go?",
     &TabulateSteps},
    {ReportGroup::kRanks, "stragglers", "Which ranks do the others wait for, and why?",
     &TabulateStragglers},
    {ReportGroup::kRanks, "hang",
     "Which rank keeps the others waiting for ever (PyTorch's Flight Recorder)?", &TabulateHang,
     kBy},
    {ReportGroup::kRanks, "pace",
     "When does each rank reach its k-th step, range or kernel, and who falls behind?",
     &TabulatePace, kOperator},
    {ReportGroup::kRanks, "comm",
     "How long does communication take, how much is waiting, how fast is the rest?", &TabulateComm},
    {ReportGroup::kRanks, "rank-pairs",
     "What do two ranks exchange, and how long does one wait for the other?", &TabulateRankPairs},
    {ReportGroup::kRanks, "groups", "Which process groups are there, of which ranks?",
     &TabulateGroups},
    {ReportGroup::kRanks, "critical-path",
     "Which chain of work did the end of the run wait for, over all ranks?", &TabulateCriticalPath},
    {ReportGroup::kRanks, "align", "How far apart are the ranks' clocks?", &TabulateAlignment},
    {ReportGroup::kTime, "temporal",
     "How much do the devices compute, do something else, or nothing?", &TabulateTemporal,
     kHtaCompat},
    {ReportGroup::kTime, "idle", "Why were the streams idle?", &TabulateIdle, kHtaCompat},
    {ReportGroup::kTime, "overlap", "How much communication hides behind computation?",
     &TabulateOverlap, kHtaCompat},
    {ReportGroup::kTime, "types", "What kinds of work ran, alone or together?", &TabulateWorkTypes,
     kHtaCompat},
    {ReportGroup::kTime, "kernels", "Where does GPU time go, by kernel?", &TabulateKernels,
     kBy | kHtaCompat | kByGrid | kKernelNames},
    {ReportGroup::kFramework, "ops",
     "Where does time go, by framework operator (torch's key_averages)?", &TabulateOps,
     kByShape | kByStack | kByModule | kTopLevel},
    {ReportGroup::kTime, "patterns",
     "Which sequences of kernels recur, on streams and in operators?", &TabulatePatterns,
     kHtaCompat | kOperator | kMinLength},
    {ReportGroup::kHost, "host", "Which lines of Python does the host spend its time in?",
     &TabulateHostLines, kBy},
    {ReportGroup::kHost, "launches", "How long do launches take, and how late does the work begin?",
     &TabulateLaunches, kBy | kHtaCompat},
    {ReportGroup::kHost, "queue", "How much launched work waits on each stream?", &TabulateQueue,
     kHtaCompat},
    {ReportGroup::kTime, "bandwidth", "How fast are copies and memsets?", &TabulateBandwidth,
     kHtaCompat},
    {ReportGroup::kTime, "copies", "What is copied and set, and how fast?", &TabulateCopies},
    {ReportGroup::kHost, "syncs", "Where does the host wait for the device, and what does it cost?",
     &TabulateSyncs, kNothing, true},
    {ReportGroup::kTime, "usage",
     "How much of its time does each device run kernels (as MegEngine)?", &TabulateUsage, kBy},
    {ReportGroup::kCapture, "devices",
     "How did clocks, power, temperature and memory of the devices go?", &TabulateDevices},
    {ReportGroup::kHost, "apis", "Where does the host spend its time in CUDA calls?",
     &TabulateApis},
    {ReportGroup::kHost, "ranges",
     "How long do the program's NVTX ranges take, on the host and on the GPU?", &TabulateRanges,
     kBy | kHtaCompat},
    {ReportGroup::kFramework, "modules", "Where does the forward pass go, module by module?",
     &TabulateModules, kModelFacts | kPeakFlops},
    {ReportGroup::kFramework, "layers",
     "What does each layer take, return, compute and move in one forward (torchstat)?",
     &TabulateLayers},
    {ReportGroup::kFramework, "throughput",
     "How many samples a second, and how much of the peak (MFU, HFU)?", &TabulateThroughput,
     kModelFacts | kPeakFlops},
    {ReportGroup::kFramework, "roofline",
     "How far from its limit is each operator, and is that compute or memory?", &TabulateRoofline,
     kBy | kRoofs | kPeakFlops},
    {ReportGroup::kFramework, "counters",
     "What did hardware counters measure of each kernel, and do the shapes agree?",
     &TabulateCounters, kBy},
    {ReportGroup::kFramework, "flop-check",
     "Do our FLOPs agree with PyTorch's FlopCounterMode (run --flop-check)?", &TabulateFlopCheck},
    {ReportGroup::kFramework, "custom-flops",
     "What computes beside PyTorch's own operators, how much, and of which lines?",
     &TabulateCustomFlops},
    {ReportGroup::kFramework, "parameters",
     "What is each module made of: parameters, gradients, optimizer state, by dtype?",
     &TabulateParameters},
    {ReportGroup::kHost, "stacks", "Where in the program do CUDA calls come from?",
     &TabulateCallSites, kNothing, true},
    {ReportGroup::kTime, "graphs", "What ran in CUDA graphs, and which line put it there?",
     &TabulateGraphs, kNothing, true},
    {ReportGroup::kMemory, "memory", "How much memory was given out, at most and at the end?",
     &TabulateMemory},
    {ReportGroup::kMemory, "memory-peak", "What held the memory at its peak?", &TabulateMemoryPeak,
     kByStack},
    {ReportGroup::kMemory, "memory-modules", "Which modules held it, and what for?",
     &TabulateMemoryModules},
    {ReportGroup::kMemory, "memory-steps",
     "How much did each step need, save for its backward and leave behind?", &TabulateMemorySteps},
    {ReportGroup::kMemory, "memory-over-time",
     "How much was held from moment to moment, by category?", &TabulateMemoryOverTime, kSampleRate},
    {.group = ReportGroup::kTime,
     .name = "diff",
     .question = "What takes longer in RUN2 than in RUN1 (report RUN1 RUN2 diff)?",
     .compare = &TabulateDiff},
    {ReportGroup::kCapture, "losses", "Which events are missing, and why?", &TabulateLosses},
    {ReportGroup::kCapture, "losses-by-writer", "Which thread's events are missing?",
     &TabulateLossesByWriter},
    {ReportGroup::kCapture, "cost", "What did ranktap itself cost, and did it keep to its budget?",
     &TabulateCost},
    {ReportGroup::kCapture, "windows",
     "Which windows were captured, and how far apart did the ranks begin and end?",
     &TabulateWindows},
    {ReportGroup::kCapture, "gaps", "When was capture off on purpose, and why?", &TabulateGaps},
};

// What --by asks of a report. Each is a report of its own, under the name that it had alone.
struct Way {
  std::string_view of, by;
  Report report;
};
constexpr Way kWays[] = {
    {"waterfall",
     "rank",
     {ReportGroup::kRanks, "waterfall-by-rank",
      "Where did the mean step of each rank go, in causes that add up?", &TabulateWaterfallByRank}},
    {"host",
     "thread",
     {ReportGroup::kHost, "host-threads",
      "Which threads wanted a CPU and had none, were stopped, or waited for storage?",
      &TabulateHostThreads}},
    {"host",
     "step",
     {ReportGroup::kHost, "host-steps",
      "Where was each rank's main thread in each step, and at which line for longest?",
      &TabulateHostSteps}},
    {"hang",
     "rank",
     {ReportGroup::kRanks, "hang-by-rank", "Which call did each rank enter last?",
      &TabulateHangByRank}},
    {"kernels",
     "duration",
     {ReportGroup::kTime, "kernel-histogram",
      "How many calls of each kernel take how long, in bins?", &TabulateKernelHistogram}},
    {"launches",
     "kernel",
     {ReportGroup::kHost, "launches-by-kernel",
      "How long does each kernel take from its launch to its end?", &TabulateLaunchesByKernel}},
    {"usage",
     "window",
     {ReportGroup::kTime, "usage-over-time", "How busy is each device, window by window?",
      &TabulateUsageOverTime}},
    {"ranges",
     "kernel",
     {ReportGroup::kHost, "range-kernels", "Which kernels does each range launch?",
      &TabulateRangeKernels}},
    {"ranges",
     "projection",
     {ReportGroup::kHost, "range-projection",
      "How long do the devices work for each range, from first to last?",
      &TabulateRangeProjection}},
    {"ranges",
     "instance",
     {ReportGroup::kHost, "range-trace",
      "When was each range open, within which other, and when did its work run?",
      &TabulateRangeTrace}},
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
  return {ReportGroup::kTime,
          "insights",
          "What does the rule of this name in nsys analyze find?",
          [](const Run& run, const ReportOptions&) {
            return TabulateInsightsNamed(run, kNsysRuleNames[kRule]);
          },
          kNothing,
          true};
}
constexpr Report kNsysRules[] = {NsysRule<0>(), NsysRule<1>(), NsysRule<2>(),
                                 NsysRule<3>(), NsysRule<4>(), NsysRule<5>()};

}  // namespace

Table Report::operator()(const Run& of, const ReportOptions& options) const {
  if (compare != nullptr) return Named({.notes = {"compares two runs: name both"}});
  const Report* const by = options.by.empty() ? nullptr : ReportBy(*this, options.by);
  return by == nullptr ? Named(run(of, options)) : by->Named(by->run(of, options));
}

Table Report::Named(Table table) const {
  table.name = name;
  AcceptFormerNames(&table);
  return table;
}

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
  for (const Way& way : kWays) {
    if (way.report.name == name) return &way.report;
  }
  return nullptr;
}

std::vector<std::string_view> WaysOf(const Report& report) {
  if (report.name == "roofline") return {kRooflineByNames.begin(), kRooflineByNames.end()};
  if (report.name == "counters") return {"kernel", "operator", "module", "launch"};
  std::vector<std::string_view> ways;
  for (const Way& way : kWays) {
    if (way.of == report.name) ways.push_back(way.by);
  }
  return ways;
}

const Report* ReportBy(const Report& report, std::string_view by) {
  for (const Way& way : kWays) {
    if (way.of == report.name && way.by == by) return &way.report;
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

// The table of contents of collector/analysis. One line an analysis.
#include "collector/report/analysis.h"
#include "collector/report/capture/cost_summary.h"
#include "collector/report/capture/gap_summary.h"
#include "collector/report/capture/loss_summary.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/capture/window_summary.h"
#include "collector/report/device/bandwidth_summary.h"
#include "collector/report/device/copy_summary.h"
#include "collector/report/device/device_summary.h"
#include "collector/report/device/graph_summary.h"
#include "collector/report/device/hta_kernels.h"
#include "collector/report/device/idle_summary.h"
#include "collector/report/device/kernel_summary.h"
#include "collector/report/device/overlap_summary.h"
#include "collector/report/device/patterns.h"
#include "collector/report/device/queue_summary.h"
#include "collector/report/device/temporal_summary.h"
#include "collector/report/device/usage_summary.h"
#include "collector/report/device/work_type_summary.h"
#include "collector/report/framework/flop_check.h"
#include "collector/report/framework/module_summary.h"
#include "collector/report/framework/op_summary.h"
#include "collector/report/framework/parameter_summary.h"
#include "collector/report/host/api_summary.h"
#include "collector/report/host/call_sites.h"
#include "collector/report/host/launch_summary.h"
#include "collector/report/host/range_summary.h"
#include "collector/report/host/sync_summary.h"
#include "collector/report/memory/memory_summary.h"
#include "collector/report/memory/memory_tables.h"
#include "collector/report/ranks/clock_alignment.h"
#include "collector/report/ranks/comm_summary.h"
#include "collector/report/ranks/critical_path.h"
#include "collector/report/ranks/group_summary.h"
#include "collector/report/steps/run_diff.h"
#include "collector/report/steps/step_summary.h"
#include "collector/report/steps/stragglers.h"
#include "collector/report/steps/throughput.h"
#include "collector/report/steps/verdict.h"
#include "collector/report/steps/waterfall.h"

namespace ranktap::collector {
namespace {

constexpr Analysis kAnalyses[] = {
    {"ranks", "What did each rank do, and how did it end?", &TabulateRanks},
    {"verdict", "What did the job lose most to?", nullptr, &TabulateVerdict},
    {"waterfall", "Where did the mean step go, in causes that add up?", nullptr,
     &TabulateWaterfall},
    {"waterfall-by-rank", "The same on each rank", nullptr, &TabulateWaterfallByRank},
    {"steps", "How long did each step take, and where did it go?", &TabulateSteps},
    {"stragglers", "Which ranks do the others wait for, and why?", nullptr, &TabulateStragglers},
    {"comm", "How long does communication take, how much is waiting, how fast is the rest?",
     nullptr, &TabulateComm},
    {"groups", "Which process groups are there, of which ranks?", &TabulateGroups},
    {"critical-path", "Which chain of work did the end of the run wait for, over all ranks?",
     nullptr, &TabulateCriticalPath},
    {"align", "How far apart are the ranks' clocks?", nullptr, &TabulateAlignment},
    {"temporal", "How much do the devices compute, do something else, or nothing?", nullptr,
     &TabulateTemporal},
    {"idle", "Why were the streams idle?", nullptr, &TabulateIdle},
    {"overlap", "How much communication hides behind computation?", nullptr, &TabulateOverlap},
    {"types", "What kinds of work ran, alone or together?", nullptr, &TabulateWorkTypes},
    {"kernels", "Where does GPU time go, by kernel?", nullptr, &TabulateKernelsWith},
    {"ops", "Where does time go, by framework operator (torch's key_averages)?", nullptr,
     &TabulateOps},
    {"patterns", "Which sequences of kernels recur, on streams and in operators?", nullptr,
     &TabulatePatterns},
    {"launches", "How long do launches take, and how late does the work begin?", nullptr,
     &TabulateLaunches},
    {"queue", "How much launched work waits on each stream?", nullptr, &TabulateQueue},
    {"bandwidth", "How fast are copies and memsets?", nullptr, &TabulateBandwidth},
    {"copies", "What is copied and set, and how fast?", &TabulateCopies},
    {"syncs", "Where does the host wait for the device, and what does it cost?", &TabulateSyncs},
    {"usage", "How much of its time does each device run kernels (as MegEngine)?", &TabulateUsage},
    {"usage-over-time", "The same, window by window", &TabulateUsageOverTime},
    {"devices", "How did clocks, power, temperature and memory of the devices go?",
     &TabulateDevices},
    {"apis", "Where does the host spend its time in CUDA calls?", &TabulateApis},
    {"ranges", "How long do the program's NVTX ranges take, on the host and on the GPU?",
     &TabulateRanges},
    {"modules", "Where does the forward pass go, module by module?", &TabulateModules},
    {"throughput", "How many samples a second, and how much of the peak (MFU, HFU)?", nullptr,
     &TabulateThroughput},
    {"flop-check", "Do our FLOPs agree with PyTorch's FlopCounterMode (run --flop-check)?",
     &TabulateFlopCheck},
    {"parameters", "What is each module made of: parameters, gradients, optimizer state, by dtype?",
     &TabulateParameters},
    {"stacks", "Where in the program do CUDA calls come from?", &TabulateCallSites, nullptr, true},
    {"graphs", "What ran in CUDA graphs, and which line put it there?", &TabulateGraphs, nullptr,
     true},
    {"memory", "How much memory was given out, at most and at the end?", &TabulateMemory},
    {"memory-peak", "What held the memory at its peak?", nullptr, &TabulateMemoryPeak},
    {"memory-modules", "Which modules held it, and what for?", &TabulateMemoryModules},
    {"memory-steps", "How much did each step need, save for its backward and leave behind?",
     &TabulateMemorySteps},
    {"memory-over-time", "How much was held from moment to moment, by category?", nullptr,
     &TabulateMemoryOverTime},
    {"diff", "What takes longer in RUN2 than in RUN1 (report RUN1 RUN2 diff)?", nullptr, nullptr,
     false, &TabulateDiff},
    {"losses", "Which events are missing, and why?", &TabulateLosses},
    {"losses-by-writer", "Which thread's events are missing?", &TabulateLossesByWriter},
    {"cost", "What did ranktap itself cost, and did it keep to its budget?", &TabulateCost},
    {"windows", "Which windows were captured, and how far apart did the ranks begin and end?",
     &TabulateWindows},
    {"gaps", "When was capture off on purpose, and why?", &TabulateGaps},
};

}  // namespace

std::span<const Analysis> AllAnalyses() { return kAnalyses; }

const Analysis* FindAnalysis(std::string_view name) {
  for (const Analysis& analysis : kAnalyses) {
    if (analysis.name == name) return &analysis;
  }
  return nullptr;
}

}  // namespace ranktap::collector

// What every report answers, by name; registry.cc lists them. Times are nanoseconds, sizes bytes;
// a cell is empty where the trace does not say.
#pragma once

#include <string_view>

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// What did each rank do, and how did it end? In the order of the run.
Table TabulateRanks(const Run& run, const ReportOptions& options = {});

// The sentence as the title, the losses as rows.
Table TabulateVerdict(const Run& run, const ReportOptions& options = {});

// Causes of lost time and the advice against them: a row for each rule that fired and each place at
// which it did (insights/rules.h), the largest saving first. saving_ns is of each step and at most
// what the critical path bears; lost_ns is what the rank named loses, borne or not; count is of
// that rank. Uses Trace::symbols where they are there.
Table TabulateInsights(const Run& run, const ReportOptions& options = {});
// Asks only the rule that answers what this rule of `nsys analyze` asks.
Table TabulateInsightsNamed(const Run& run, std::string_view nsys);

// The run in one row. Steps are those after the warm-up, of all ranks; shares are of the mean step.
Table TabulateKeyFigures(const Run& run, const ReportOptions& options = {});

// A row for each cause: its mean over the ranks, and the ranks with the least and the most of it.
Table TabulateWaterfall(const Run& run, const ReportOptions& options = {});

// A row for each rank and cause.
Table TabulateWaterfallByRank(const Run& run, const ReportOptions& options = {});

// How long did each step take, and where did it go? One row a rank and step (steps.h finds them):
//   total_ns        on the host
//   device_ns  of the step's time on the host, when anything ran on a device
//   gpu_ns          sum of the work that the step launched, whenever it ran
//   kernels         that it launched
// and, where our hook in PyTorch told of them, the phases that began in the step:
//   forward_ns      root modules running
//   backward_ns, optimizer_ns
//   data_ns         waiting for the data loader
Table TabulateSteps(const Run& run, const ReportOptions& options = {});

Table TabulateStragglers(const Run& run, const ReportOptions& options = {});

// How long does communication take, and how much of that is waiting? One row for each group, type
// and size (bytes of the full buffer, as nccl-tests count):
//   calls            of the group, not of each rank
//   transfer_ns      mean: from the last arrival to the end, the shortest member's duration
//   wait_ns          mean over members: before the last one arrived
//   algbw_gb_per_s   bytes / transfer
//   busbw_gb_per_s   algbw x nccl-tests' factor (doc/PERFORMANCE.md): allreduce 2(n-1)/n;
//                    allgather, reducescatter, alltoall, gather, scatter (n-1)/n; else 1
//   exposed_ns       mean over members: nothing computed on the rank meanwhile
//   last_rank        that arrived last most often; last_percent: of the calls
// Where only one member was traced, wait and transfer cannot be told apart: kernel_ns is both, and
// the bandwidths, which are of kernel_ns then, are lower bounds.
Table TabulateComm(const Run& run, const ReportOptions& options = {});

// A row for each rank and each other rank that is with it in a collective: of all calls in which
// both were traced. wait_ns: `rank` waited in calls to which `other_rank` came last.
Table TabulateRankPairs(const Run& run, const ReportOptions& options = {});

// The process groups of torch.distributed that each rank told of.
Table TabulateGroups(const Run& run, const ReportOptions& options = {});

Table TabulateCriticalPath(const Run& run, const ReportOptions& options = {});

Table TabulateAlignment(const Run& run, const ReportOptions& options = {});

// How far from what the device can do is each operator, kernel (--by), module, phase, step or rank?
// FLOPs and bytes are of the shapes (facts/roofline); least_ns is the larger of FLOPs by the
// peak of the unit that ran and bytes by the bandwidth of the device's memory, added up over the
// calls; percent_of_roof is least_ns by the time of what is counted.
Table TabulateRoofline(const Run& run, const ReportOptions& options = {});

// What did hardware counters measure of each kernel, operator, module (--by) or launch? Of files
// that have them; --by launch is HTA's get_cupti_counter_data_with_operators.
Table TabulateCounters(const Run& run, const ReportOptions& options = {});

// How much of the time from its first to its last device work did each rank compute, do something
// else on the device, or nothing? compute = |union of compute work|, idle = span - |union of all|,
// the rest is non-compute. --hta-compat: get_temporal_breakdown.
Table TabulateTemporal(const Run& run, const ReportOptions& options = {});

// Why was each stream idle between two pieces of work? Gaps count from the latest end so far.
// host_wait: the next one's launch began after that; kernel_wait: shorter than 30 us otherwise;
// other: the rest. --hta-compat: get_idle_time_breakdown, whose gaps count from the previous end.
Table TabulateIdle(const Run& run, const ReportOptions& options = {});

// How much of the communication hides behind computation? overlap = |comm and compute| / |comm|,
// exposed = |comm without compute|. --hta-compat: get_comm_comp_overlap.
Table TabulateOverlap(const Run& run, const ReportOptions& options = {});

// What kinds of work ran, alone or at the same time as others? Exclusive times by combination.
// --hta-compat: the first table of get_gpu_kernel_breakdown, which cuts each piece to whole us.
Table TabulateWorkTypes(const Run& run, const ReportOptions& options = {});

Table TabulateKernels(const Run& run, const ReportOptions& options = {});

// How many calls of each kernel take how long? Over all ranks, of the ten kernels with the most
// time; a bin reaches from bin_from_ns to below bin_to_ns. Edges: 0, 1, 2, 5, 10, 20, 50, ... ns.
// Bins without calls are left out.
Table TabulateKernelHistogram(const Run& run, const ReportOptions& options = {});

Table TabulateOps(const Run& run, const ReportOptions& options = {});

Table TabulatePatterns(const Run& run, const ReportOptions& options = {});

// How long do launches take, and how long until the work begins? launch_delay = max(0, start of the
// work - end of the launch). --hta-compat: get_cuda_kernel_launch_stats, which knows four launch
// functions; the default takes every call that work was joined to.
Table TabulateLaunches(const Run& run, const ReportOptions& options = {});

// When do the ranks begin the k-th of what they all do? A row for each k:
//   instance   the step's number; with --operator NAME k, from 0, of the range or kernel NAME
//   start      of the first rank to begin it, after the first instance of all
//   spread     from there until the last rank that has it begins it
//   first, last, longest rank    who begins it first and last, whose is the longest
// Starts are on the first rank's clock: one host's clock, else by collectives (TabulateAlignment),
// else from each rank's own first instance, which a note says. The ranks that fall behind: the
// difference of the median lag behind the first in the last and in the first quarter of the
// instances that all ranks have, by instance.
Table TabulatePace(const Run& run, const ReportOptions& options = {});

// How long does each kernel take from its launch to its end? Call, queue and kernel of each launch:
//   total      from the call's begin to the kernel's end, or the call's where that comes later
//   queue      from the call's end to the kernel's begin; of the `queued` that began after it
// Kernels of a launch that began several, as of a graph, are left out.
Table TabulateLaunchesByKernel(const Run& run, const ReportOptions& options = {});

// How many launched pieces of work wait on each stream? +1 at the start of a launch, -1 at the
// start of its work; statistics over these moments. --hta-compat: get_queue_length_summary.
Table TabulateQueue(const Run& run, const ReportOptions& options = {});

// How fast are copies and memsets? Sum of the bandwidths of what runs at the same time, by kind,
// over the moments at which it changes and is not 0. --hta-compat: get_memory_bw_summary.
Table TabulateBandwidth(const Run& run, const ReportOptions& options = {});

// What is copied and set, how fast, and does the host wait for it? One row for each direction and
// pair of memories, all ranks:
//   gb_per_s      bytes / device time, 10^9 bytes
//   host_ns       inside the calls that launched it
//   alone_ns      device time in which nothing computed on the rank
Table TabulateCopies(const Run& run, const ReportOptions& options = {});

// Where does the host wait for the device, and what does that cost? One row a function:
//   calls, per_step   (per step where steps are found, of all calls within steps)
//   total_ns, ...     host time inside the calls
//   idle_after_ns     nothing ran on any device of the rank, from the moment in the call at which
//                     the device ran dry to the next work: what the device lost to the wait
Table TabulateSyncs(const Run& run, const ReportOptions& options = {});

// How much of its time does each device run kernels? As MegEngine's profiler defines it
// (imperative/src/impl/profiler/states.h), for each rank and device:
//   gpu_usage_ratio    100 |union of kernels| / (last kernel's end - first kernel's start)
//   train_time_ratio   100 sum over steps (last end - first start of the step's kernels) / the same
// and `busy_percent`, in which copies and memsets count too.
Table TabulateUsage(const Run& run, const ReportOptions& options = {});

Table TabulateUsageOverTime(const Run& run, const ReportOptions& options = {});

// How did clock, power, temperature and memory of each rank's devices go, and what held the clocks
// back? From what NVML told the collector once a second.
Table TabulateDevices(const Run& run, const ReportOptions& options = {});

Table TabulateApis(const Run& run, const ReportOptions& options = {});

Table TabulateRanges(const Run& run, const ReportOptions& options = {});

// Which kernels does each range launch? One row for each name and domain of ranges and each kernel
// that their thread launched while one was open; once for a name, though ranges of it nest.
Table TabulateRangeKernels(const Run& run, const ReportOptions& options = {});

// How long do the devices work for each range? projected_ns: of each instance that launched work,
// from the begin of the first piece to the end of the last; gpu_ns: the sum of the pieces.
Table TabulateRangeProjection(const Run& run, const ReportOptions& options = {});

// The same for each instance, with how it nests: self_ns is without the ranges directly below it,
// level 0 is the outermost of its thread, parent_id the id of the innermost one that holds it.
Table TabulateRangeTrace(const Run& run, const ReportOptions& options = {});

Table TabulateModules(const Run& run, const ReportOptions& options = {});

// One forward of the model, layer by layer, as torchstat prints it.
Table TabulateLayers(const Run& run, const ReportOptions& options = {});

Table TabulateThroughput(const Run& run, const ReportOptions& options = {});

// A row for each operator and shapes of its inputs that either counts, those that disagree first.
// Ours are FlopRule::kCounter of the operators recorded meanwhile, an operator inside of a counted
// one not again. The rows are of each rank that was checked.
Table TabulateFlopCheck(const Run& run, const ReportOptions& options = {});

// Operators and kernels that no formula knows, with their arithmetic where their source or a person
// (trace/known_arithmetic.h) says it.
Table TabulateCustomFlops(const Run& run, const ReportOptions& options = {});

// The size of each module: parameters, and the bytes of parameters, buffers, gradients and
// optimizer state, with all modules below it, after the first step of the first rank that told.
// Each storage counts once, for the module that comes first.
Table TabulateParameters(const Run& run, const ReportOptions& options = {});

Table TabulateCallSites(const Run& run, const ReportOptions& options = {});

// What ran in CUDA graphs, and which line of the program put it there? Needs Trace::symbols for the
// source; at level kernels a graph is one row, since its nodes are not told apart.
Table TabulateGraphs(const Run& run, const ReportOptions& options = {});

// A row for each rank, device and allocator: the framework's (Allocations; CPU memory has no
// device) and CUDA's own (what the program got from cudaMalloc and its like). Peaks are of what is
// given out; the framework's counts are torch's "Total Allocated" where the trace has it, else sums
// from the first event on.
Table TabulateMemory(const Run& run, const ReportOptions& options = {});

// The holders of the framework's memory at each device's peak: categories where the file has them,
// else the stacks or the operators that allocated what was not given back by then; these too with
// options.by_stack.
Table TabulateMemoryPeak(const Run& run, const ReportOptions& options = {});

// The memory that each module held at the device's peak, by category, without its children; and its
// activations when the backward that followed began.
Table TabulateMemoryModules(const Run& run, const ReportOptions& options = {});

// A row for each rank, device and step in which memory was watched: what was held at its start, at
// its peak and at its end; `unfreed_bytes` of what the step allocated is still held at its end,
// `new_unfreed_bytes` of that is neither gradient nor parameter nor optimizer state: what leaks.
// `saved_bytes` are the activations held when its first backward began: saved for it, and the
// outputs. `fragmentation_percent` = reserved but not given out, at the most reserved; of GPUs.
Table TabulateMemorySteps(const Run& run, const ReportOptions& options = {});

Table TabulateMemoryOverTime(const Run& run, const ReportOptions& options = {});

// What takes longer in `after` than in `before`? One row for the step, each kernel and each
// operator, the step first, then the largest difference. Times and calls are means per step of a
// rank, warm-up left out; where a run has no steps, a rank's whole trace counts as one.
//   p_value      that the steps of both runs are of one distribution: Mann-Whitney's U over steps,
//                normal approximation with correction for ties; needs 5 steps of each run
//   significant  "yes" where p_value < 0.01
Table TabulateDiff(const Run& before, const Run& after);

// Which events are missing, and why? One row for each trace and reason: a rank with thousands of
// threads can have thousands of writers.
Table TabulateLosses(const Run& run, const ReportOptions& options = {});

// The same for each writer that lost any.
Table TabulateLossesByWriter(const Run& run, const ReportOptions& options = {});

// What did ranktap itself cost each rank? Time of the program's threads in hooks is estimated from
// every 64th event's, and does not hold what CUPTI does around them.
Table TabulateCost(const Run& run, const ReportOptions& options = {});

// Which windows (ranktap start, --delay, signals) were captured, on how many ranks, and how far
// apart did the ranks begin and end? By CLOCK_REALTIME: between nodes the difference of their
// clocks is in the figure.
Table TabulateWindows(const Run& run, const ReportOptions& options = {});

// When was capture off on purpose, and why? Times count from the trace's first event.
Table TabulateGaps(const Run& run, const ReportOptions& options = {});

}  // namespace ranktap::collector

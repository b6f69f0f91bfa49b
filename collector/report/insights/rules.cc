#include "collector/report/insights/rules.h"

#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr InsightRule kRules[] = {
    {.name = "launch-bound",
     .advice = "Launch the loop as a CUDA graph (torch.cuda.graph, "
               "torch.compile(mode=\"reduce-overhead\")), or give each launch more work.",
     .of_rank = &FindLaunchBound},
    {.name = "tiny-kernels",
     .advice = "Fuse them: torch.compile, a fused or foreach optimizer, a larger batch.",
     .of_rank = &FindTinyKernels},
    {.name = "tensor-reads",
     .advice = "Keep the value on the device (torch.where, masks, accumulate and read every N "
               "steps), or copy it to pinned memory and wait for an event a step later.",
     .of_rank = &FindTensorReads},
    {.name = "pageable-copies",
     .advice = "Copy from or to pinned memory (pin_memory=True) with non_blocking=True, a batch "
               "ahead of its use.",
     .of_rank = &FindPageableCopies,
     .nsys = "cuda_memcpy_async"},
    {.name = "blocking-copies",
     .advice = "Use cudaMemcpyAsync with pinned memory on a stream of its own.",
     .of_rank = &FindBlockingCopies,
     .nsys = "cuda_memcpy_sync"},
    {.name = "blocking-memsets",
     .advice = "Use cudaMemsetAsync, and no managed or pinned memory as its target.",
     .of_rank = &FindBlockingMemsets,
     .nsys = "cuda_memset_sync"},
    {.name = "explicit-syncs",
     .advice = "Leave the call out, or let a stream wait for an event (cudaStreamWaitEvent) "
               "instead of the host.",
     .of_rank = &FindExplicitSyncs,
     .nsys = "cuda_api_sync"},
    {.name = "gpu-gaps",
     .advice = "Look at what the host does in the gap: ranktap report RUN ops, ranges and stacks; "
               "do it before the step, or in another thread.",
     .of_rank = &FindGpuGaps,
     .nsys = "gpu_gaps"},
    {.name = "low-utilization",
     .advice = "Give the device more at once (a larger batch, CUDA graphs, data loaded ahead); "
               "ranktap report RUN waterfall says what it waits for.",
     .of_rank = &FindLowUtilization,
     .nsys = "gpu_time_util"},
    {.name = "comm-on-compute-stream",
     .advice = "Communicate on a stream of its own: DistributedDataParallel instead of all_reduce "
               "by hand, async_op=True, MegEngine's make_allreduce_cb.",
     .of_rank = &FindCommOnComputeStream},
    {.name = "small-collectives",
     .advice = "Join them: a larger bucket_cap_mb, one flat buffer, "
               "torch.distributed's coalescing manager.",
     .of_rank = &FindSmallCollectives},
    {.name = "exposed-comm",
     .advice = "Start collectives earlier or split them: overlap of gradients with the backward "
               "pass, prefetch of FSDP's all-gathers, asynchronous tensor parallelism.",
     .of_rank = &FindExposedComm},
    {.name = "data-loading",
     .advice = "More workers (num_workers), persistent_workers=True, a larger prefetch_factor, "
               "cheaper decoding.",
     .of_rank = &FindDataLoading},
    {.name = "straggler",
     .advice = "Find out what is different on that rank: ranktap report RUN stragglers, "
               "waterfall-by-rank and devices.",
     .of_job = &FindStraggler},
    {.name = "slow-clock",
     .advice = "Compare power cap, temperature and clock settings of that board: ranktap report "
               "RUN devices.",
     .of_job = &FindSlowClock},
    {.name = "default-stream",
     .advice = "Create streams with cudaStreamNonBlocking, or compile with "
               "--default-stream per-thread.",
     .of_rank = &FindDefaultStream},
};

}  // namespace

std::span<const InsightRule> AllInsightRules() { return kRules; }

}  // namespace ranktap::collector

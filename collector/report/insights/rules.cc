#include "collector/report/insights/rules.h"

#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr InsightRule kRules[] = {
    {.name = "launch-bound",
     .advice = "Launch the loop as a CUDA graph (torch.cuda.graph, "
               "torch.compile(mode=\"reduce-overhead\")), or give each launch more work.",
     .of_rank = &FindLaunchBound,
     .evidence = "launches"},
    {.name = "tiny-kernels",
     .advice = "Fuse them: torch.compile, a fused or foreach optimizer, a larger batch.",
     .of_rank = &FindTinyKernels,
     .evidence = "kernels --sort calls"},
    {.name = "tensor-reads",
     .advice = "Keep the value on the device (torch.where, masks, accumulate and read every N "
               "steps), or copy it to pinned memory and wait for an event a step later.",
     .of_rank = &FindTensorReads,
     .evidence = "syncs"},
    {.name = "pageable-copies",
     .advice = "Copy from or to pinned memory (pin_memory=True) with non_blocking=True, a batch "
               "ahead of its use.",
     .of_rank = &FindPageableCopies,
     .nsys = "cuda_memcpy_async",
     .evidence = "copies"},
    {.name = "blocking-copies",
     .advice = "Use cudaMemcpyAsync with pinned memory on a stream of its own.",
     .of_rank = &FindBlockingCopies,
     .nsys = "cuda_memcpy_sync",
     .evidence = "apis"},
    {.name = "blocking-memsets",
     .advice = "Use cudaMemsetAsync, and no managed or pinned memory as its target.",
     .of_rank = &FindBlockingMemsets,
     .nsys = "cuda_memset_sync",
     .evidence = "apis"},
    {.name = "explicit-syncs",
     .advice = "Leave the call out, or let a stream wait for an event (cudaStreamWaitEvent) "
               "instead of the host.",
     .of_rank = &FindExplicitSyncs,
     .nsys = "cuda_api_sync",
     .evidence = "syncs"},
    {.name = "gpu-gaps",
     .advice =
         "Look at what the host does in the gap (operators, ranges, stacks), and do it before the "
         "step, or in another thread.",
     .of_rank = &FindGpuGaps,
     .nsys = "gpu_gaps",
     .evidence = "ops"},
    {.name = "low-utilization",
     .advice = "Give the device more at once (a larger batch, CUDA graphs, data loaded ahead); "
               "the waterfall says what it waits for.",
     .of_rank = &FindLowUtilization,
     .nsys = "gpu_time_util",
     .evidence = "waterfall"},
    {.name = "comm-on-compute-stream",
     .advice = "Communicate on a stream of its own: DistributedDataParallel instead of all_reduce "
               "by hand, async_op=True, MegEngine's make_allreduce_cb.",
     .of_rank = &FindCommOnComputeStream,
     .evidence = "overlap"},
    {.name = "small-collectives",
     .advice = "Join them: a larger bucket_cap_mb, one flat buffer, "
               "torch.distributed's coalescing manager.",
     .of_rank = &FindSmallCollectives,
     .evidence = "comm"},
    {.name = "exposed-comm",
     .advice = "Start collectives earlier or split them: overlap of gradients with the backward "
               "pass, prefetch of FSDP's all-gathers, asynchronous tensor parallelism.",
     .of_rank = &FindExposedComm,
     .evidence = "overlap"},
    {.name = "data-loading",
     .advice = "More workers (num_workers), persistent_workers=True, a larger prefetch_factor, "
               "cheaper decoding.",
     .of_rank = &FindDataLoading,
     .evidence = "steps"},
    {.name = "straggler",
     .advice =
         "Find out what is different on the late rank: its input, its machine, the clock of its "
         "device.",
     .of_job = &FindStraggler,
     .evidence = "stragglers"},
    {.name = "slow-clock",
     .advice = "Compare power cap, temperature and clock settings of that board with the others'.",
     .of_job = &FindSlowClock,
     .evidence = "devices",
     .of_compute = true},
    {.name = "default-stream",
     .advice = "Create streams with cudaStreamNonBlocking, or compile with "
               "--default-stream per-thread.",
     .of_rank = &FindDefaultStream,
     .evidence = "queue"},

    {.name = "copies-after-step",
     .advice = "Do it once before the loop, keep tensors in the layout and dtype that the "
               "model wants, or return views (view, expand) instead of copies.",
     .of_rank = &FindCopiesAfterStep,
     .evidence = "ops",
     .of_compute = true},
    {.name = "no-tensor-cores",
     .advice = "Use a dtype and shapes that tensor cores take.",
     .of_rank = &FindNoTensorCores,
     .evidence = "kernels",
     .of_compute = true},
    {.name = "off-multiple-shapes",
     .advice = "Pad the dimensions (vocabulary, hidden size, batch) to multiples of 8 for "
               "16-bit floats and of 4 for TF32.",
     .of_rank = &FindOffMultipleShapes,
     .evidence = "ops --group-by-shape",
     .of_compute = true},
    {.name = "tf32-off",
     .advice = "Call torch.set_float32_matmul_precision(\"high\").",
     .of_rank = &FindTf32Off,
     .evidence = "kernels",
     .of_compute = true},
    {.name = "unfused-optimizer",
     .advice = "Construct the optimizer with fused=True, or with foreach=True where there is "
               "no fused one.",
     .of_rank = &FindUnfusedOptimizer,
     .evidence = "ops",
     .of_compute = true},
    {.name = "layout-transposes",
     .advice = "Keep model and inputs in channels-last: "
               "model.to(memory_format=torch.channels_last).",
     .of_rank = &FindLayoutTransposes,
     .evidence = "kernels",
     .of_compute = true},
    {.name = "unsearched-convolutions",
     .advice = "Set torch.backends.cudnn.benchmark = True: cuDNN then tries its algorithms once "
               "for each shape, and keeps the fastest.",
     .of_rank = &FindUnsearchedConvolutions,
     .evidence = "ops --group-by-shape",
     .of_compute = true},
    {.name = "memory-bound",
     .advice =
         "Fuse them (torch.compile, fused kernels), keep them in 16 bits, and leave casts and "
         "copies between them out.",
     .of_rank = &FindMemoryBoundOperators,
     .evidence = "roofline",
     .of_compute = true},
    {.name = "products-below-roof",
     .advice = "Give products more at once (a larger batch, joined projections), dimensions that "
               "are multiples of 64, channels-last for convolutions.",
     .of_rank = &FindProductsBelowRoof,
     .evidence = "roofline",
     .of_compute = true},
    {.name = "tiny-operators",
     .advice = "Call fewer and larger operators: a larger batch, foreach or fused optimizers, "
               "torch.compile; few threads for small tensors (torch.set_num_threads).",
     .of_rank = &FindTinyOperators,
     .evidence = "roofline --sort calls",
     .of_compute = true},
    {.name = "unfused-attention",
     .advice = "Use torch.nn.functional.scaled_dot_product_attention or FlashAttention, which keep "
               "scores on chip.",
     .of_rank = &FindUnfusedAttention,
     .evidence = "roofline",
     .of_compute = true},
    {.name = "garbage-collection",
     .advice = "Call gc.freeze() after the warm-up, or gc.disable() and gc.collect() every N "
               "steps on all ranks at once.",
     .of_rank = &FindGarbageCollection,
     .evidence = "steps"},
    {.name = "allocations-in-steps",
     .advice = "Leave out torch.cuda.empty_cache(), set "
               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or leave the allocator more "
               "room.",
     .of_rank = &FindAllocationsInSteps,
     .evidence = "apis"},
    {.name = "memory-fragmentation",
     .advice = "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or allocate the largest "
               "batch first.",
     .of_rank = &FindMemoryFragmentation,
     .evidence = "memory"},
    {.name = "recompilation",
     .advice = "Keep shapes fixed or mark them dynamic (torch._dynamo.mark_dynamic), and run "
               "each variant once in the warm-up; TORCH_LOGS=recompiles says why.",
     .of_rank = &FindRecompilation,
     .evidence = "steps"},
    {.name = "first-time-costs",
     .advice = "Run a warm-up pass before what counts.",
     .of_rank = &FindFirstTimeCosts,
     .evidence = "waterfall"},
    {.name = "throttling",
     .advice = "Look at power cap and cooling of the board.",
     .of_rank = &FindThrottling,
     .evidence = "devices",
     .of_compute = true},
    {.name = "unbalanced-shards",
     .advice = "Share the work out anew: move tables, experts or layers from the rank that "
               "computes most to the one that computes least.",
     .of_job = &FindUnbalancedShards,
     .evidence = "waterfall --by rank",
     .of_compute = true},
    {.name = "checkpoint-stalls",
     .advice = "Save asynchronously (torch.distributed.checkpoint.async_save), or less often.",
     .of_rank = &FindCheckpointStalls,
     .evidence = "steps"},
    {.name = "uneven-lengths",
     .advice = "Put sequences of like length into one batch, or fill batches up to a number of "
               "tokens instead of rows.",
     .of_job = &FindUnevenLengths,
     .evidence = "steps"},
    {.name = "hidden-copies",
     .advice = "Replace what needs the number: torch.where or masks instead of indexing by a "
               "condition, nonzero_static, repeat_interleave with output_size, checks outside "
               "of the loop.",
     .of_rank = &FindHiddenCopies,
     .evidence = "syncs"},
    {.name = "anomaly-mode",
     .advice = "Leave out torch.autograd.set_detect_anomaly and detect_anomaly once the bug is "
               "found.",
     .of_rank = &FindAnomalyMode},
    {.name = "too-many-threads",
     .advice = "Set OMP_NUM_THREADS, or call torch.set_num_threads, so that all processes of the "
               "machine together have a thread for each CPU.",
     .of_rank = &FindTooManyThreads,
     .evidence = "host --by thread",
     .of_host = true},
    {.name = "cpu-throttled",
     .advice = "Raise the limit of the container or control group (cpu.max, resources.limits.cpu), "
               "or use fewer threads and loader workers.",
     .of_rank = &FindCpuThrottled,
     .evidence = "host --by thread",
     .of_host = true},
    {.name = "descheduled",
     .advice = "Look for what else runs on these CPUs (top, pidstat), and keep it off them: other "
               "CPUs for it (taskset, cpusets), or fewer jobs on the machine.",
     .of_rank = &FindDescheduled,
     .evidence = "host --by thread",
     .of_host = true},
    {.name = "far-numa",
     .advice = "Bind each rank to the CPUs beside its GPU: numactl --cpunodebind, the launcher's "
               "own option, or os.sched_setaffinity.",
     .of_rank = &FindFarNuma,
     .evidence = "host --by thread"},
    {.name = "page-faults",
     .advice =
         "Keep the data in memory, or read it ahead in another thread: a smaller mapped file, "
         "fewer processes on the machine, no swap.",
     .of_rank = &FindPageFaults,
     .evidence = "host --by thread",
     .of_host = true},
    {.name = "gil-contention",
     .advice = "Move that work to a process of its own, or into calls that give the lock back.",
     .of_rank = &FindGilContention,
     .evidence = "host",
     .of_host = true},
    {.name = "slow-read",
     .advice = "Read ahead in a loader's worker, or from a faster or nearer disk.",
     .of_rank = &FindSlowRead,
     .evidence = "host --by thread",
     .of_host = true},
    {.name = "double-products",
     .advice = "Make model and data 32-bit floats: NumPy's arrays are 64-bit by default "
               "(tensor.float(), model.float()).",
     .of_rank = &FindDoubleProducts,
     .evidence = "ops",
     .of_compute = true},
    {.name = "memory-growth",
     .advice = "Keep numbers, not tensors, of past steps (loss.item(), or detach() and a copy): a "
               "tensor that is kept holds what its graph saved, too.",
     .of_rank = &FindMemoryGrowth,
     .evidence = "memory-steps"},
    {.name = "profiler-overhead",
     .advice = "Record less: a lower --level, --budget, or a window of some steps.",
     .of_rank = &FindProfilerOverhead,
     .evidence = "cost"},
};

}  // namespace

std::span<const InsightRule> AllInsightRules() { return kRules; }

}  // namespace ranktap::collector

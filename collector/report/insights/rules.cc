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
};

}  // namespace

std::span<const InsightRule> AllInsightRules() { return kRules; }

}  // namespace ranktap::collector

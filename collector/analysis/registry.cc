// The table of contents of collector/analysis. One line an analysis.
#include "collector/analysis/analysis.h"
#include "collector/analysis/api_summary.h"
#include "collector/analysis/gap_summary.h"
#include "collector/analysis/kernel_summary.h"
#include "collector/analysis/loss_summary.h"
#include "collector/analysis/module_summary.h"
#include "collector/analysis/range_summary.h"
#include "collector/analysis/rank_summary.h"
#include "collector/analysis/step_summary.h"

namespace ranktap::collector {
namespace {

constexpr Analysis kAnalyses[] = {
    {"ranks", "What did each rank do, and how did it end?", &TabulateRanks},
    {"kernels", "Where does GPU time go, by kernel?", &TabulateKernels},
    {"apis", "Where does the host spend its time in CUDA calls?", &TabulateApis},
    {"ranges", "How long do the program's NVTX ranges take, on the host and on the GPU?",
     &TabulateRanges},
    {"steps", "How long does each training step take, and where does it go?", &TabulateSteps},
    {"modules", "Where does the forward pass go, module by module?", &TabulateModules},
    {"losses", "Which events are missing, and why?", &TabulateLosses},
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

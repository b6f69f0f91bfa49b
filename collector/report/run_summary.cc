#include "collector/report/run_summary.h"

#include <algorithm>

#include "collector/report/steps/verdict.h"

namespace ranktap::collector {

RunSummary SummarizeRun(const Run& run) {
  RunSummary summary;
  for (const Trace& trace : run.traces) {
    const RankRow& row = summary.ranks.emplace_back(SummarizeRank(trace));
    summary.cost_cpu_ns += row.cost_cpu_ns;
    summary.cost_callback_ns += row.cost_callback_ns;
    summary.lost += row.lost;
    summary.launches_without_kernel += row.launches_without_kernel;
    summary.kernel_ns += row.kernel_ns;
    summary.simulated |= row.info.simulated;
    for (const std::string& note : row.info.notes) {
      if (std::find(summary.notes.begin(), summary.notes.end(), note) == summary.notes.end()) {
        summary.notes.push_back(note);
      }
    }
  }
  summary.verdict = Judge(run).sentence;
  summary.kernels = SummarizeKernels(run.traces);
  summary.ranges = SummarizeRanges(run.traces);
  return summary;
}

}  // namespace ranktap::collector

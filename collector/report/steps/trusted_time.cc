#include "collector/report/steps/trusted_time.h"

#include <fmt/core.h>

#include "collector/analysis/each_trace.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

constexpr double kTolerableNotRead = 0.01;   // of a file's events
constexpr double kTolerableLaunches = 0.02;  // that have no kernel, of the kernels

}  // namespace

std::string WhatIsMissing(const Run& run) {
  ForEachTraceAtOnce(run, [&run](uint32_t t) { SummarizeRank(run.traces[t]); });
  for (const Trace& trace : run.traces) {
    uint64_t lost = 0;
    for (const Writer& writer : trace.writers) {
      lost += proto::Total(writer.lost) + proto::Total(writer.declared);
    }
    if (lost > 0) return fmt::format("{} lost {} events", RankName(trace), lost);
    if (!trace.damage.empty()) {
      return fmt::format("{}'s file is damaged at byte {} ({})", RankName(trace),
                         trace.damage[0].offset, trace.damage[0].what);
    }
    if (static_cast<double>(trace.not_read) >
        kTolerableNotRead * static_cast<double>(trace.events + trace.not_read)) {
      return fmt::format("{} of {} could not be read, mostly {}", Counted(trace.not_read, "event"),
                         RankName(trace), trace.not_read_most);
    }
    // Of a capture: a profiler's window has launches at its end whose kernels ran after it.
    const RankRow& row = SummarizeRank(trace);
    if (trace.is_ours() && static_cast<double>(row.launches_without_kernel) >
                               kTolerableLaunches * static_cast<double>(row.kernels)) {
      return fmt::format("{} launches of {} have no kernel record", row.launches_without_kernel,
                         RankName(trace));
    }
  }
  return "";
}

}  // namespace ranktap::collector

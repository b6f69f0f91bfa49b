#include <fmt/core.h>

#include "collector/facts/kinds_at_once.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/trace/file_notes.h"

namespace ranktap::collector {

namespace {

struct DeviceTimes {
  const Trace* trace;
  int64_t span_ns, compute_ns, rest_ns, idle_ns;
};

// Of a rank whose devices ran something.
DeviceTimes Measure(const Trace& trace, const KindsAtOnce& kinds) {
  const int64_t span = kinds.last - kinds.first, idle = kinds.ns[0];
  const int64_t compute = kinds.With(SetOf(WorkKind::kCompute));
  return {&trace, span, compute, span - compute - idle, idle};
}

const ColumnsOf<DeviceTimes> kTemporalColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const DeviceTimes& row) { return RankCell(*row.trace); }},
    {"span_ns", Unit::kNs, "The time from the first device work to the last.",
     [](const DeviceTimes& row) { return row.span_ns; }},
    {"compute_ns", Unit::kNs, "The time in which the devices compute.",
     [](const DeviceTimes& row) { return row.compute_ns; }},
    {"non_compute_ns", Unit::kNs, "The time in which the devices work and do not compute.",
     [](const DeviceTimes& row) { return row.rest_ns; }},
    {"idle_ns", Unit::kNs, "The time in which the devices run nothing.",
     [](const DeviceTimes& row) { return row.idle_ns; }},
    {"compute_percent", Unit::kPercent, "The computing share of the span.",
     [](const DeviceTimes& row) { return Percent(row.compute_ns, row.span_ns); }},
    {"non_compute_percent", Unit::kPercent,
     "The share of the span in which the devices work and do not compute.",
     [](const DeviceTimes& row) { return Percent(row.rest_ns, row.span_ns); }},
    {"idle_percent", Unit::kPercent, "The idle share of the span.",
     [](const DeviceTimes& row) { return Percent(row.idle_ns, row.span_ns); }},
};

}  // namespace

Table TabulateTemporal(const Run& run, const ReportOptions& options) {
  std::vector<DeviceTimes> rows;
  std::vector<std::string> notes;
  for (const Trace& trace : run.traces) {
    const KindsAtOnce kinds =
        options.hta_compat ? KindsAtOnceOf(HtaDeviceTimeline(trace)) : KindsAtOnceOf(trace);
    if (!kinds.any || !HasStarts(trace)) {
      notes.push_back(fmt::format("{}: {}", RankName(trace), WhyNoWork(trace)));
    } else {
      rows.push_back(Measure(trace, kinds));
    }
  }
  Table table = TableOf("Time of the devices, by rank", kTemporalColumns, rows);
  table.notes = std::move(notes);
  return table;
}

}  // namespace ranktap::collector

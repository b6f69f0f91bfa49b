#include <fmt/core.h>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/interval_set.h"
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

// The rank's devices ran something.
DeviceTimes Measure(const Trace& trace, const std::vector<DeviceSpan>& spans,
                    const std::vector<Interval>& all) {
  const int64_t span = all.back().second - all.front().first;
  const int64_t idle = span - Length(all);
  const int64_t compute = Length(MergedIntervals(spans, WorkKind::kCompute));
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
    const std::vector<DeviceSpan>& spans =
        options.hta_compat ? HtaDeviceTimeline(trace) : DeviceTimeline(trace);
    const std::vector<Interval> all = MergedIntervals(spans);
    if (all.empty() || !HasStarts(trace)) {
      notes.push_back(fmt::format("{}: {}", RankName(trace), WhyNoWork(trace)));
    } else {
      rows.push_back(Measure(trace, spans, all));
    }
  }
  Table table = TableOf("Time of the devices, by rank", kTemporalColumns, rows);
  table.notes = std::move(notes);
  return table;
}

}  // namespace ranktap::collector

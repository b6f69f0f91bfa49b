
#include "collector/analysis/device_timeline.h"
#include "collector/analysis/numbers/interval_set.h"
#include "collector/report/cells.h"
#include "collector/report/reports.h"

namespace ranktap::collector {

Table TabulateTemporal(const Run& run, const ReportOptions& options) {
  Table table{.name = "temporal",
              .title = "Time of the devices, by rank",
              .columns = {{"rank", Unit::kCount},
                          {"span_ns", Unit::kNs},
                          {"compute_ns", Unit::kNs},
                          {"non_compute_ns", Unit::kNs},
                          {"idle_ns", Unit::kNs},
                          {"compute_percent", Unit::kPercent},
                          {"non_compute_percent", Unit::kPercent},
                          {"idle_percent", Unit::kPercent}}};
  for (const Trace& trace : run.traces) {
    const std::vector<DeviceSpan>& spans =
        options.hta_compat ? HtaDeviceTimeline(trace) : DeviceTimeline(trace);
    const std::vector<Interval> all = MergedIntervals(spans);
    if (all.empty()) {
      table.notes.push_back(RankName(trace) + ": nothing ran on a device");
      continue;
    }
    const int64_t span = all.back().second - all.front().first;
    const int64_t idle = span - Length(all);
    const int64_t compute = Length(MergedIntervals(spans, WorkKind::kCompute));
    const int64_t rest = span - compute - idle;
    table.rows.push_back({RankCell(trace), span, compute, rest, idle, Percent(compute, span),
                          Percent(rest, span), Percent(idle, span)});
  }
  return table;
}

}  // namespace ranktap::collector

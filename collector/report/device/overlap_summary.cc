
#include "collector/analysis/device_timeline.h"
#include "collector/analysis/numbers/interval_set.h"
#include "collector/report/cells.h"
#include "collector/report/reports.h"

namespace ranktap::collector {

Table TabulateOverlap(const Run& run, const ReportOptions& options) {
  Table table{.name = "overlap",
              .title = "Communication behind computation, by rank",
              .columns = {{"rank", Unit::kCount},
                          {"communication_ns", Unit::kNs},
                          {"overlapped_ns", Unit::kNs},
                          {"exposed_ns", Unit::kNs},
                          {"overlap_percent", Unit::kPercent}}};
  for (const Trace& trace : run.traces) {
    const std::vector<DeviceSpan>& spans =
        options.hta_compat ? HtaDeviceTimeline(trace) : DeviceTimeline(trace);
    const std::vector<Interval> comm = MergedIntervals(spans, WorkKind::kCommunication);
    const int64_t total = Length(comm);
    const int64_t both = Length(Intersection(comm, MergedIntervals(spans, WorkKind::kCompute)));
    table.rows.push_back({RankCell(trace), total, both, total - both, Percent(both, total)});
    if (total == 0) table.notes.push_back(RankName(trace) + ": no communication on its devices");
  }
  return table;
}

}  // namespace ranktap::collector


#include <algorithm>
#include <map>
#include <string>

#include "collector/analysis/device_timeline.h"
#include "collector/analysis/numbers/duration_statistics.h"
#include "collector/analysis/numbers/interval_set.h"
#include "collector/report/cells.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

struct CopyRow {
  DurationStatistics time;
  int64_t bytes = 0, largest = 0, host_ns = 0, alone_ns = 0;
};

void Add(const Trace& trace, std::map<std::string, CopyRow>* by_name) {
  const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
  const std::vector<Interval> compute = MergedIntervals(spans, WorkKind::kCompute);
  for (const DeviceSpan& span : spans) {
    const bool is_copy = span.table == DeviceSpan::Table::kCopy;
    if (!is_copy && span.table != DeviceSpan::Table::kMemset) continue;
    CopyRow& row = (*by_name)[NameOf(trace, span)];
    const auto bytes = static_cast<int64_t>(is_copy ? trace.copies.bytes[span.row]
                                                    : trace.memsets.bytes[span.row]);
    row.time.Add(span.end - span.start);
    row.bytes += bytes;
    row.largest = std::max(row.largest, bytes);
    row.alone_ns += span.end - span.start - Length(Within(compute, span.start, span.end));
    if (span.launch != kNone) {
      row.host_ns += trace.api_calls.end[span.launch] - trace.api_calls.start[span.launch];
    }
  }
}

}  // namespace

Table TabulateCopies(const Run& run, const ReportOptions&) {
  std::map<std::string, CopyRow> by_name;
  for (const Trace& trace : run.traces) Add(trace, &by_name);
  std::vector<std::pair<std::string, CopyRow>> rows(by_name.begin(), by_name.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.time.total_ns > b.second.time.total_ns;
  });
  Table table{.name = "copies",
              .title = "Copies and memsets, all ranks",
              .columns = {{"name", Unit::kText},
                          {"calls", Unit::kCount},
                          {"total_bytes", Unit::kBytes},
                          {"mean_bytes", Unit::kBytes, Shown::kDetail},
                          {"max_bytes", Unit::kBytes, Shown::kDetail},
                          {"total_ns", Unit::kNs},
                          {"mean_ns", Unit::kNs, Shown::kDetail},
                          {"max_ns", Unit::kNs, Shown::kDetail},
                          {"gb_per_s", Unit::kCount},
                          {"alone_ns", Unit::kNs},
                          {"host_ns", Unit::kNs}}};
  for (const auto& [name, row] : rows) {
    table.rows.push_back({name, row.time.count, row.bytes, row.bytes / row.time.count, row.largest,
                          row.time.total_ns, row.time.mean_ns(), row.time.max_ns,
                          row.time.total_ns == 0 ? Cell()
                                                 : Cell(static_cast<double>(row.bytes) /
                                                        static_cast<double>(row.time.total_ns)),
                          row.alone_ns, row.host_ns});
  }
  if (table.rows.empty()) table.notes.push_back("nothing was copied or set");
  return table;
}

}  // namespace ranktap::collector

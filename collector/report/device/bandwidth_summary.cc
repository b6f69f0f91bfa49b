
#include <algorithm>
#include <map>

#include "collector/analysis/device_timeline.h"
#include "collector/analysis/numbers/describe.h"
#include "collector/report/cells.h"
#include "collector/report/description_columns.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

struct Change {
  int64_t time;
  double by;  // GB/s
};

double BandwidthOf(const Trace& trace, const DeviceSpan& span) {
  const bool is_copy = span.table == DeviceSpan::Table::kCopy;
  const double reported = is_copy ? trace.copies.reported_bandwidth.At(span.row)
                                  : trace.memsets.reported_bandwidth.At(span.row);
  if (reported > 0) return reported;
  const uint64_t bytes = is_copy ? trace.copies.bytes[span.row] : trace.memsets.bytes[span.row];
  const int64_t ns = span.end - span.start;
  return ns == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(ns);
}

std::vector<double> Levels(std::vector<Change> changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.time < b.time; });
  std::vector<double> levels;
  double level = 0;
  for (const Change& change : changes) {
    level += change.by;
    // What rounding leaves of a sum that is 0 again is no bandwidth.
    if (level > 1e-9) levels.push_back(level);
  }
  return levels;
}

struct Traffic {
  std::vector<Change> changes;
  int64_t count = 0, bytes = 0, ns = 0;
};

}  // namespace

Table TabulateBandwidth(const Run& run, const ReportOptions& options) {
  Table table{.name = "bandwidth",
              .title = "Bandwidth of copies and memsets, GB/s",
              .columns = {{"rank", Unit::kCount},
                          {"name", Unit::kText},
                          {"count", Unit::kCount},
                          {"total_bytes", Unit::kBytes},
                          {"total_ns", Unit::kNs, Shown::kDetail}}};
  AddDescriptionColumns("_gbps", Unit::kCount, &table.columns);
  for (const Trace& trace : run.traces) {
    std::map<std::string, Traffic> by_name;
    for (const DeviceSpan& span :
         options.hta_compat ? HtaDeviceTimeline(trace) : DeviceTimeline(trace)) {
      const bool is_copy = span.table == DeviceSpan::Table::kCopy;
      if (!is_copy && span.table != DeviceSpan::Table::kMemset) continue;
      Traffic& traffic = by_name[is_copy ? NameOf(trace, span).substr(0, 11) : "Memset"];
      const double bandwidth = BandwidthOf(trace, span);
      // HTA lasts what took no time for 1 us.
      const int64_t end =
          options.hta_compat && span.end == span.start ? span.start + 1000 : span.end;
      traffic.changes.push_back({span.start, bandwidth});
      traffic.changes.push_back({end, -bandwidth});
      traffic.bytes += static_cast<int64_t>(is_copy ? trace.copies.bytes[span.row]
                                                    : trace.memsets.bytes[span.row]);
      traffic.ns += span.end - span.start;
    }
    for (auto& [name, traffic] : by_name) {
      const std::vector<double> levels = Levels(std::move(traffic.changes));
      std::vector<Cell> row = {RankCell(trace), name, static_cast<int64_t>(levels.size()),
                               traffic.bytes, traffic.ns};
      AddDescriptionCells(Describe(levels), Unit::kCount, &row);
      table.rows.push_back(std::move(row));
    }
  }
  if (table.rows.empty()) table.notes.push_back("nothing was copied or set");
  return table;
}

}  // namespace ranktap::collector

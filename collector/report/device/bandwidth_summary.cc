
#include <algorithm>
#include <map>
#include <utility>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/describe.h"
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
  const int64_t ns = span.end - span.start;
  return ns == 0 ? 0 : static_cast<double>(BytesMoved(trace, span)) / static_cast<double>(ns);
}

std::vector<double> Levels(std::vector<Change> changes) {
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.time < b.time; });
  std::vector<double> levels;
  double level = 0;
  for (const Change& change : changes) {
    level += change.by;
    // Rounding leaves a rest of a sum that is 0 again; we do not show it as a bandwidth.
    if (level > 1e-9) levels.push_back(level);
  }
  return levels;
}

struct Traffic {
  const Trace* trace = nullptr;
  std::string name;
  std::vector<Change> changes;  // HTA's
  std::vector<double> of_each;  // of copies whose bytes or GB/s are known
  int64_t bytes = 0, ns = 0;
  int64_t unknown = 0;  // copies whose bytes the file does not say
  Description gbps;
};

bool BytesUnknown(const Trace& trace, const DeviceSpan& span) {
  return (span.table == DeviceSpan::Table::kCopy ? trace.copies.bytes_unknown
                                                 : trace.memsets.bytes_unknown)
             .At(span.row) != 0;
}

void AddSpan(const DeviceSpan& span, bool as_hta, Traffic* traffic) {
  const Trace& trace = *traffic->trace;
  const double bandwidth = BandwidthOf(trace, span);
  if (as_hta) {
    // HTA lasts what took no time for 1 us.
    const int64_t end = span.end == span.start ? span.start + 1000 : span.end;
    traffic->changes.push_back({span.start, bandwidth});
    traffic->changes.push_back({end, -bandwidth});
  } else {
    const bool unknown = BytesUnknown(trace, span);
    traffic->unknown += unknown ? 1 : 0;
    if (unknown && bandwidth <= 0) return;
    if (bandwidth > 0) traffic->of_each.push_back(bandwidth);
  }
  traffic->bytes += static_cast<int64_t>(BytesMoved(trace, span));
  traffic->ns += span.end - span.start;
}

void AddTrace(const Trace& trace, bool as_hta, std::vector<Traffic>* rows) {
  std::map<std::string, Traffic> by_name;
  for (const DeviceSpan& span : as_hta ? HtaDeviceTimeline(trace) : DeviceTimeline(trace)) {
    const bool is_copy = span.table == DeviceSpan::Table::kCopy;
    if (!is_copy && span.table != DeviceSpan::Table::kMemset) continue;
    Traffic& traffic = by_name[is_copy ? NameOf(trace, span).substr(0, 11) : "Memset"];
    traffic.trace = &trace;
    AddSpan(span, as_hta, &traffic);
  }
  for (auto& [name, traffic] : by_name) {
    traffic.name = name;
    traffic.gbps = Describe(as_hta ? Levels(std::exchange(traffic.changes, {}))
                                   : std::exchange(traffic.of_each, {}));
    rows->push_back(std::move(traffic));
  }
}

// Missing bytes are missing: a sum without some of its parts would be a number too small.
Cell BytesCell(const Traffic& row) { return row.unknown > 0 ? Cell() : Cell(row.bytes); }

const ColumnsOf<Traffic> kBandwidthColumns = JoinedColumns<Traffic>({
    {
        {"rank", Unit::kCount, kRankMeaning,
         [](const Traffic& row) { return RankCell(*row.trace); }},
        {"name", Unit::kText, "The direction of the copy and its memories, or the memory set.",
         [](const Traffic& row) { return row.name; }},
        {"count", Unit::kCount, "The number of copies or memsets.",
         [](const Traffic& row) { return static_cast<int64_t>(row.gbps.count); }},
        {"total_bytes", Unit::kBytes, "The bytes that they moved or set, added up.",
         [](const Traffic& row) { return BytesCell(row); }},
        {"total_ns", Unit::kNs, "Their durations, added up.",
         [](const Traffic& row) { return row.ns; }, Shown::kDetail},
    },
    DescriptionColumns<Traffic, &Traffic::gbps, Unit::kGbPerSecond>("_gb_per_s", "rates"),
});

}  // namespace

Table TabulateBandwidth(const Run& run, const ReportOptions& options) {
  std::vector<Traffic> rows;
  for (const Trace& trace : run.traces) AddTrace(trace, options.hta_compat, &rows);
  Table table = TableOf("Bandwidth of copies and memsets, GB/s", kBandwidthColumns, rows);
  if (table.rows.empty()) table.notes.push_back("nothing was copied or set");
  return table;
}

}  // namespace ranktap::collector

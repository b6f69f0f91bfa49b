
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/numbers/duration_distribution.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/duration_columns.h"
#include "collector/report/reports.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

// Copies one way between one pair of memories, or bytes set in one.
struct CopyRow {
  std::string name;
  DurationDistribution time;
  std::vector<double> sizes;
  Description size;  // of `sizes`, in bytes
  int64_t bytes = 0, host_ns = 0, alone_ns = 0;
  int64_t all_ns = 0;          // of all rows
  bool bytes_unknown = false;  // of one of them at least
  // What the file's own GB/s say of how much those were; -1: it says nothing of one of them.
  double told_bytes = 0;
};

using RowsByName = std::map<std::string, CopyRow>;

// Names are made once for all copies of one kind.
class RowsByKind {
 public:
  RowsByKind(const Trace& trace, RowsByName* by_name) : trace_(trace), by_name_(*by_name) {}
  CopyRow* Of(const DeviceSpan& span) {
    const std::tuple<uint32_t, uint32_t, uint32_t> kind =
        span.table == DeviceSpan::Table::kCopy
            ? std::tuple(uint32_t{trace_.copies.copy_kind[span.row]},
                         uint32_t{trace_.copies.src_kind[span.row]},
                         uint32_t{trace_.copies.dst_kind[span.row]})
            : std::tuple(kNone, uint32_t{trace_.memsets.memory_kind[span.row]}, 0u);
    CopyRow*& row = rows_[kind];
    if (row == nullptr) row = &by_name_[NameOf(trace_, span)];
    return row;
  }

 private:
  const Trace& trace_;
  RowsByName& by_name_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, CopyRow*> rows_;
};

void AddCopy(const Trace& trace, const DeviceSpan& span, CopyRow* row) {
  const bool is_copy = span.table == DeviceSpan::Table::kCopy;
  const auto bytes = static_cast<int64_t>(BytesMoved(trace, span));
  row->time.Add(span.end - span.start);
  row->bytes += bytes;
  const bool unknown = (is_copy ? trace.copies.bytes_unknown.At(span.row)
                                : trace.memsets.bytes_unknown.At(span.row)) != 0;
  row->bytes_unknown |= unknown;
  const double gbps = is_copy ? trace.copies.reported_bandwidth.At(span.row)
                              : trace.memsets.reported_bandwidth.At(span.row);
  if (unknown && gbps <= 0) row->told_bytes = -1;
  if (row->told_bytes >= 0) {
    row->told_bytes +=
        unknown ? gbps * static_cast<double>(span.end - span.start) : static_cast<double>(bytes);
  }
  row->sizes.push_back(static_cast<double>(bytes));
  if (span.launch != kNone) {
    row->host_ns += trace.api_calls.end[span.launch] - trace.api_calls.start[span.launch];
  }
}

// A copy that has not ended, as far as the work was walked by its starts.
struct OpenCopy {
  int64_t end = 0;
  CopyRow* row = nullptr;
};

void Add(const Trace& trace, RowsByName* by_name) {
  RowsByKind rows(trace, by_name);
  int64_t computes = INT64_MIN;  // until when
  std::vector<OpenCopy> open;
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    if (span.table == DeviceSpan::Table::kCopy || span.table == DeviceSpan::Table::kMemset) {
      const DeviceSpan copy = span;  // else each kernel, too, would be made whole in memory
      CopyRow* const row = rows.Of(copy);
      AddCopy(trace, copy, row);
      row->alone_ns += std::max(span.end - std::max(span.start, computes), int64_t{0});
      open.push_back({span.end, row});
    } else if (span.kind == WorkKind::kCompute) {
      const int64_t from = std::max(span.start, computes);
      if (span.end <= from) continue;
      if (!open.empty()) {
        std::erase_if(open,
                      [start = span.start](const OpenCopy& copy) { return copy.end <= start; });
      }
      for (const OpenCopy& copy : open) {
        if (copy.end > from) copy.row->alone_ns -= std::min(span.end, copy.end) - from;
      }
      computes = span.end;
    }
  }
}

Cell GbPerSecond(const CopyRow& row) {
  if (row.time.total_ns == 0 || row.told_bytes < 0) return {};
  return row.told_bytes / static_cast<double>(row.time.total_ns);
}

// Missing bytes are missing: a sum without some of its parts would be a number too small.
Cell Known(const CopyRow& row, int64_t bytes) { return row.bytes_unknown ? Cell() : Cell(bytes); }

const ColumnsOf<CopyRow> kCopyColumns = JoinedColumns<CopyRow>(
    {{
         {"name", Unit::kText, "The direction of the copy and its memories, or the memory set.",
          [](const CopyRow& row) { return row.name; }},
         {"calls", Unit::kCount, "The number of copies or memsets.",
          [](const CopyRow& row) { return row.time.count; }},
         {"total_bytes", Unit::kBytes, "The bytes that they moved or set, added up.",
          [](const CopyRow& row) { return Known(row, row.bytes); }},
         {"mean_bytes", Unit::kBytes, "The mean size of one.",
          [](const CopyRow& row) { return Known(row, row.bytes / row.time.count); },
          Shown::kDetail},
         {"median_bytes", Unit::kBytes, "The median size of one.",
          [](const CopyRow& row) { return Known(row, std::llround(row.size.median)); },
          Shown::kDetail},
         {"stddev_bytes", Unit::kBytes, "The sample standard deviation of the sizes.",
          [](const CopyRow& row) {
            return Known(row, row.size.count < 2 ? 0 : std::llround(row.size.deviation));
          },
          Shown::kDetail},
         {"min_bytes", Unit::kBytes, "The smallest size.",
          [](const CopyRow& row) { return Known(row, std::llround(row.size.min)); },
          Shown::kDetail},
         {"max_bytes", Unit::kBytes, "The largest size.",
          [](const CopyRow& row) { return Known(row, std::llround(row.size.max)); },
          Shown::kDetail},
         {"total_ns", Unit::kNs, "Their durations, added up.",
          [](const CopyRow& row) { return row.time.total_ns; }},
         {"share_percent", Unit::kPercent, "Their share of the time of all copies and memsets.",
          [](const CopyRow& row) { return Percent(row.time.total_ns, row.all_ns); },
          Shown::kDetail},
     },
     DurationColumns<CopyRow>(
         "", "copies or memsets",
         [](const CopyRow& row) -> const DurationDistribution& { return row.time; },
         Shown::kDetail),
     {
         {"gb_per_s", Unit::kGbPerSecond, "The bytes divided by the time.",
          [](const CopyRow& row) { return GbPerSecond(row); }},
         {"alone_ns", Unit::kNs, "Their time while the device computed nothing.",
          [](const CopyRow& row) { return row.alone_ns; }},
         {"host_ns", Unit::kNs, "The host's time in the calls that started them.",
          [](const CopyRow& row) { return row.host_ns; }},
     }});

}  // namespace

Table TabulateCopies(const Run& run, const ReportOptions&) {
  RowsByName by_name;
  for (const Trace& trace : run.traces) Add(trace, &by_name);
  int64_t all_ns = 0;
  for (const auto& [name, row] : by_name) all_ns += row.time.total_ns;
  std::vector<CopyRow> rows;
  for (auto& [name, row] : by_name) {
    row.name = name;
    row.all_ns = all_ns;
    row.size = Describe(std::move(row.sizes));
    rows.push_back(std::move(row));
  }
  SortRows(&rows,
           [](const CopyRow& a, const CopyRow& b) { return a.time.total_ns > b.time.total_ns; });
  Table table = TableOf("Copies and memsets, all ranks", kCopyColumns, rows);
  if (table.rows.empty()) table.notes.push_back("nothing was copied or set");
  return table;
}

}  // namespace ranktap::collector

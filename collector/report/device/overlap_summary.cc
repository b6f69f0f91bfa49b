#include <fmt/core.h>

#include "collector/facts/kinds_at_once.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/trace/file_notes.h"

namespace ranktap::collector {

namespace {

struct Overlap {
  const Trace* trace;
  int64_t communication_ns, overlapped_ns;
};

constexpr KindSet kCommunicates = SetOf(WorkKind::kCommunication);
constexpr KindSet kOverlaps = kCommunicates | SetOf(WorkKind::kCompute);

const ColumnsOf<Overlap> kOverlapColumns = {
    {"rank", Unit::kCount, kRankMeaning, [](const Overlap& row) { return RankCell(*row.trace); }},
    {"communication_ns", Unit::kNs, "The time in which the device communicates.",
     [](const Overlap& row) { return row.communication_ns; }},
    {"overlapped_ns", Unit::kNs, "The part of it in which the device computes as well.",
     [](const Overlap& row) { return row.overlapped_ns; }},
    {"exposed_ns", Unit::kNs, "The part of it in which the device does not compute.",
     [](const Overlap& row) { return row.communication_ns - row.overlapped_ns; }},
    {"overlap_percent", Unit::kPercent, "The overlapped time as a share of the communication time.",
     [](const Overlap& row) { return Percent(row.overlapped_ns, row.communication_ns); }},
};

}  // namespace

Table TabulateOverlap(const Run& run, const ReportOptions& options) {
  std::vector<Overlap> rows;
  std::vector<std::string> unknown;
  for (const Trace& trace : run.traces) {
    if (!HasStarts(trace)) {
      unknown.push_back(fmt::format("{}: {}", RankName(trace), WhyNoWork(trace)));
      continue;
    }
    const KindsAtOnce kinds =
        options.hta_compat ? KindsAtOnceOf(HtaDeviceTimeline(trace)) : KindsAtOnceOf(trace);
    rows.push_back({&trace, kinds.With(kCommunicates), kinds.With(kOverlaps)});
  }
  Table table = TableOf("Communication behind computation, by rank", kOverlapColumns, rows);
  table.notes = std::move(unknown);
  for (const Overlap& row : rows) {
    if (row.communication_ns > 0) continue;
    table.notes.push_back(fmt::format("{}: no communication on its devices", RankName(*row.trace)));
  }
  return table;
}

}  // namespace ranktap::collector

#include <algorithm>

#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

std::string ReasonName(v1::Gap::Reason reason) {
  switch (reason) {
    case v1::Gap::REASON_LEVEL:
      return "level";
    case v1::Gap::REASON_OTHER_PROFILER:
      return "another profiler";
    case v1::Gap::REASON_FORK:
      return "fork";
    case v1::Gap::REASON_ERROR:
      return "internal error";
    case v1::Gap::REASON_EXIT:
      return "exit";
    case v1::Gap::REASON_BUDGET:
      return "overhead budget";
    case v1::Gap::REASON_CONFINED:
      return "confined program";
    default:
      return "unknown";
  }
}

struct GapLine {
  const Trace* trace = nullptr;
  const Gap* gap = nullptr;
};

const ColumnsOf<GapLine> kGapColumns = {
    {"rank", Unit::kCount, kRankMeaning, [](const GapLine& line) { return RankCell(*line.trace); }},
    {"file", Unit::kText, "The trace file that the row was read from.",
     [](const GapLine& line) { return line.trace->info.file; }, Shown::kDetail},
    {"source", Unit::kText, "The kind of events that was off; \"all\" means everything.",
     [](const GapLine& line) { return line.gap->source.empty() ? "all" : line.gap->source; }},
    {"reason", Unit::kText, "Why capture was off.",
     [](const GapLine& line) { return ReasonName(line.gap->reason); }},
    {"start_ns", Unit::kNs, "When the gap began, counted from the rank's first event.",
     [](const GapLine& line) { return line.gap->start - line.trace->first_ns; }},
    {"duration_ns", Unit::kNs, "How long capture was off.",
     [](const GapLine& line) {
       return line.gap->open ? Cell() : Cell(line.gap->end - line.gap->start);
     }},
    {"detail", Unit::kText, "More about the reason.",
     [](const GapLine& line) { return line.gap->detail; }, Shown::kDetail},
};

}  // namespace

Table TabulateGaps(const Run& run, const ReportOptions&) {
  std::vector<GapLine> lines;
  for (const Trace& trace : run.traces) {
    for (const Gap& gap : trace.gaps) lines.push_back({&trace, &gap});
  }
  Table table = TableOf("Times without capture, by rank", kGapColumns, lines);
  if (lines.empty()) table.notes.push_back("capture was never off");
  if (std::ranges::any_of(lines, [](const GapLine& line) { return line.gap->open; })) {
    table.notes.push_back("without a duration: to the end of the process");
  }
  return table;
}

}  // namespace ranktap::collector

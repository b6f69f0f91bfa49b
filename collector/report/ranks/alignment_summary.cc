#include <fmt/core.h>

#include "collector/facts/clock_alignment.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

struct AlignmentLine {
  const Trace* trace = nullptr;
  ClockDifference clock;
};

Cell Known(const ClockDifference& clock, double ns) {
  return clock.known ? Cell(static_cast<int64_t>(ns)) : Cell();
}

// The reference has no bounds.
Cell Bound(const ClockDifference& clock, double ns) {
  return clock.trace == 0 ? Cell() : Known(clock, ns);
}

const ColumnsOf<AlignmentLine> kAlignmentColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const AlignmentLine& line) { return RankCell(*line.trace); }},
    {"collectives", Unit::kCount, "The collectives that the rank shares with the reference.",
     [](const AlignmentLine& line) { return static_cast<int64_t>(line.clock.collectives); }},
    {"offset_ns", Unit::kNs, "How far the rank's clock is ahead of the reference's.",
     [](const AlignmentLine& line) { return Known(line.clock, line.clock.offset_ns); }},
    {"drift_ppm", Unit::kCount,
     "How much faster the rank's clock runs than the reference's, in millionths.",
     [](const AlignmentLine& line) {
       return line.clock.known ? Cell(line.clock.drift_ppm) : Cell();
     }},
    {"residual_ns", Unit::kNs,
     "The spread that offset and drift leave, from the first quartile to the third.",
     [](const AlignmentLine& line) { return Known(line.clock, line.clock.residual_ns); }},
    {"low_ns", Unit::kNs, "The smallest offset that the collectives allow.",
     [](const AlignmentLine& line) { return Bound(line.clock, line.clock.low_ns); },
     Shown::kDetail},
    {"high_ns", Unit::kNs, "The largest offset that the collectives allow.",
     [](const AlignmentLine& line) { return Bound(line.clock, line.clock.high_ns); },
     Shown::kDetail},
    {"host", Unit::kText, "The machine that the rank ran on.",
     [](const AlignmentLine& line) { return line.trace->info.host; }, Shown::kDetail},
};

void AddNote(const AlignmentLine& line, Table* table) {
  if (!line.clock.known) {
    table->notes.push_back(
        fmt::format("{}: shares no collective with the others", RankName(*line.trace)));
  } else if (line.clock.low_ns > line.clock.high_ns) {
    table->notes.push_back(
        fmt::format("{}: no offset lets every collective begin before it ends; its clock jumped, "
                    "or collectives were matched wrongly",
                    RankName(*line.trace)));
  }
}

}  // namespace

Table TabulateAlignment(const Run& run, const ReportOptions&) {
  std::vector<AlignmentLine> lines;
  for (const ClockDifference& clock : AlignClocks(run, MatchCollectives(run))) {
    lines.push_back({&run.traces[clock.trace], clock});
  }
  Table table =
      TableOf("Clocks against the first rank's, from collectives", kAlignmentColumns, lines);
  for (const AlignmentLine& line : lines) AddNote(line, &table);
  table.notes.push_back(
      "offset: what a rank's clock shows more than the first's when they first met; residual: the "
      "interquartile range, below three times which no skew is a finding");
  return table;
}

}  // namespace ranktap::collector

// The ranks that the others wait for, one a row.
#include <fmt/core.h>

#include "collector/facts/causes/stragglers.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/report/cells.h"
#include "collector/report/claims/claim.h"
#include "collector/report/claims/late_rank.h"
#include "collector/report/claims/mean_step.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

struct StragglerLine {
  Straggler found;
  const Trace* trace = nullptr;
  LateLine late = {};
  std::string place = {};
  int64_t mean_step = 0;  // of the run: the late rank's own may be shorter than the wait for it
};

const ColumnsOf<StragglerLine> kStragglerColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const StragglerLine& line) { return RankCell(*line.trace); }},
    {"caused_wait_ns", Unit::kNs, "The time a step that a waiting rank waits for this one.",
     [](const StragglerLine& line) { return line.found.caused_wait_ns; }},
    {"step_percent", Unit::kPercent,
     "That wait as a share of the mean step of all ranks; empty: it is longer.",
     [](const StragglerLine& line) {
       return line.found.caused_wait_ns > line.mean_step
                  ? Cell()
                  : Percent(line.found.caused_wait_ns, line.mean_step);
     }},
    {"last_arrivals", Unit::kCount, "The collectives in which the rank arrived last.",
     [](const StragglerLine& line) { return line.found.last_arrivals; }},
    {"collectives", Unit::kCount, "The collectives that the rank took part in.",
     [](const StragglerLine& line) { return line.found.collectives; }, Shown::kDetail},
    {"steps_late", Unit::kCount, "The steps in which it caused the most wait of all ranks.",
     [](const StragglerLine& line) { return static_cast<int64_t>(line.found.steps_late); }},
    {"steps", Unit::kCount, "The steps that ranktap looked at.",
     [](const StragglerLine& line) { return static_cast<int64_t>(line.found.steps); },
     Shown::kDetail},
    {"kind", Unit::kText,
     "persistent: late in 2 steps or more, in half of them, twice as often as any other; else "
     "transient; empty: one step.",
     [](const StragglerLine& line) {
       if (line.found.steps < 2) return Cell();  // nobody can know
       return Cell(std::string(line.found.persistent ? "persistent" : "transient"));
     }},
    {"cause", Unit::kText, "What takes this rank longer than the others.",
     [](const StragglerLine& line) {
       return line.found.cause ? Cell(std::string(NameOf(*line.found.cause))) : Cell();
     }},
    {"excess_ns", Unit::kNs, "How much longer that takes it a step than the median of the others.",
     [](const StragglerLine& line) {
       return line.found.cause ? Cell(line.found.excess_ns) : Cell();
     }},
    {"most_in", Unit::kText, "The module, node of the backward pass or kernel with most of that.",
     [](const StragglerLine& line) { return line.place.empty() ? Cell() : Cell(line.place); },
     Shown::kDetail},
    {"program_line", Unit::kText,
     "The line of Python at which it spends more time than the others, of samples.",
     [](const StragglerLine& line) {
       return line.late.text.empty() ? Cell() : Cell(line.late.text);
     },
     Shown::kDetail},
};

}  // namespace

Table TabulateStragglers(const Run& run, const ReportOptions&) {
  const MeanStep mean = MeanOfRanks(ComputeWaterfalls(run));
  std::vector<StragglerLine> lines;
  for (const Straggler& found : StragglersOf(run)) {
    lines.push_back({found, &run.traces[found.trace], LineOfLateRank(run, found),
                     PlaceOfExcess(run, found), mean.ns});
  }
  Table table = TableOf("Ranks that the others wait for", kStragglerColumns, lines);
  if (lines.empty()) {
    table.notes.push_back(
        "no collective with two traced members in which one waited for more than 10 us");
  } else if (const Ruling& ruling = RulingOn(run, Claim::kLateRank); ruling.is_undecided()) {
    table.notes.push_back(fmt::format("who is late is undecided: {}", ruling.why));
  }
  return table;
}

}  // namespace ranktap::collector


#include "collector/report/capture/origin_advice.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"

namespace ranktap::collector {

namespace {

struct GroupLine {
  const Trace* trace = nullptr;
  const ProcessGroup* group = nullptr;
};

std::string RanksOf(const ProcessGroup& group) {
  std::string ranks;
  for (const uint32_t rank : group.ranks)
    ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
  return ranks;
}

const ColumnsOf<GroupLine> kGroupColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const GroupLine& line) { return RankCell(*line.trace); }},
    {"group", Unit::kText, "The name of the process group.",
     [](const GroupLine& line) { return line.group->name; }},
    {"description", Unit::kText, "The description that the program gave.",
     [](const GroupLine& line) { return line.group->description; }},
    {"backend", Unit::kText, "The library that communicates: nccl, gloo, ...",
     [](const GroupLine& line) { return line.group->backend; }},
    {"size", Unit::kCount, "The number of ranks in the group.",
     [](const GroupLine& line) { return int64_t{line.group->size}; }},
    {"ranks", Unit::kText, "The ranks of the group.",
     [](const GroupLine& line) { return RanksOf(*line.group); }},
};

}  // namespace

Table TabulateGroups(const Run& run, const ReportOptions&) {
  std::vector<GroupLine> lines;
  for (const Trace& trace : run.traces) {
    for (const ProcessGroup& group : trace.process_groups) lines.push_back({&trace, &group});
  }
  Table table = TableOf("Process groups, as each rank sees them", kGroupColumns, lines);
  if (lines.empty()) {
    table.notes.push_back(AdviceFor(
        run,
        {.ours = "no process groups were told: torch.distributed was not initialised, or the run "
                 "was not recorded at --level full",
         .profiler = "the file names no process group: torch.profiler writes them where "
                     "torch.distributed was initialised as it began",
         .other = "the file names no process group"}));
  }
  return table;
}

}  // namespace ranktap::collector

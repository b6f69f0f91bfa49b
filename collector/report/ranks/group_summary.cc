
#include "collector/report/cells.h"
#include "collector/report/reports.h"

namespace ranktap::collector {

Table TabulateGroups(const Run& run, const ReportOptions&) {
  Table table{.name = "groups",
              .title = "Process groups, as each rank sees them",
              .columns = {{"rank", Unit::kCount},
                          {"group", Unit::kText},
                          {"description", Unit::kText},
                          {"backend", Unit::kText},
                          {"size", Unit::kCount},
                          {"ranks", Unit::kText}}};
  for (const Trace& trace : run.traces) {
    for (const ProcessGroup& group : trace.process_groups) {
      std::string ranks;
      for (const uint32_t rank : group.ranks) {
        ranks += (ranks.empty() ? "" : ",") + std::to_string(rank);
      }
      table.rows.push_back({RankCell(trace), group.name, group.description, group.backend,
                            int64_t{group.size}, ranks});
    }
  }
  if (table.rows.empty()) {
    table.notes.push_back(
        "no process groups were told: torch.distributed was not initialised, or the run was not "
        "recorded at --level full");
  }
  return table;
}

}  // namespace ranktap::collector

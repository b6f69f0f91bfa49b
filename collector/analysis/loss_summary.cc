#include "collector/analysis/loss_summary.h"

#include "collector/analysis/rank_summary.h"

namespace ranktap::collector {
namespace {

void AddWriter(const Trace& trace, const Writer& writer, Table* table) {
  for (size_t i = 0; i < proto::kLossCount; ++i) {
    const uint64_t events = writer.lost[i] + writer.declared[i];
    if (events == 0) continue;
    table->rows.push_back({trace.info.rank ? Cell(static_cast<int64_t>(*trace.info.rank)) : Cell(),
                           trace.info.file, static_cast<int64_t>(writer.id), writer.name,
                           std::string(proto::kLossInfo[i].name), static_cast<int64_t>(events),
                           std::string(proto::kLossInfo[i].meaning)});
  }
}

}  // namespace

Table TabulateLosses(const Run& run) {
  Table table{.name = "losses",
              .title = "Events that are missing, declared by reason",
              .columns = {{"rank", Unit::kCount},
                          {"file", Unit::kText, true},
                          {"writer", Unit::kCount},
                          {"thread", Unit::kText},
                          {"reason", Unit::kText},
                          {"events", Unit::kCount},
                          {"meaning", Unit::kText, true}}};
  for (const Trace& trace : run.traces) {
    for (const Writer& writer : trace.writers) AddWriter(trace, writer, &table);
    for (const Damage& damage : trace.damage) {
      table.notes.push_back(trace.path + ": offset " + std::to_string(damage.offset) + ": " +
                            damage.what);
    }
    const int64_t without = SummarizeRank(trace).launches_without_kernel;
    if (without > 0) {
      table.notes.push_back(trace.info.file +
                            ": launches without a kernel record: " + std::to_string(without));
    }
  }
  if (table.rows.empty()) table.notes.push_back("no event was declared lost");
  for (const std::string& problem : run.problems) table.notes.push_back(problem);
  return table;
}

}  // namespace ranktap::collector

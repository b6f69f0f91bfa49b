
#include <array>

#include "collector/report/capture/rank_summary.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

struct ReasonLoss {
  int64_t events = 0, writers = 0;
};

int64_t LostBy(const Writer& writer, size_t reason) {
  return static_cast<int64_t>(writer.lost[reason] + writer.declared[reason]);
}

Cell RankOf(const Trace& trace) {
  return trace.info.rank ? Cell(static_cast<int64_t>(*trace.info.rank)) : Cell();
}

void AddReasons(const Trace& trace, Table* table) {
  std::array<ReasonLoss, proto::kLossCount> reasons;
  for (const Writer& writer : trace.writers) {
    for (size_t i = 0; i < reasons.size(); ++i) {
      const int64_t events = LostBy(writer, i);
      reasons[i].events += events;
      reasons[i].writers += events > 0 ? 1 : 0;
    }
  }
  for (size_t i = 0; i < reasons.size(); ++i) {
    if (reasons[i].events == 0) continue;
    table->rows.push_back({RankOf(trace), trace.info.file, std::string(proto::kLossInfo[i].name),
                           reasons[i].events, reasons[i].writers,
                           static_cast<int64_t>(trace.writers.size()),
                           std::string(proto::kLossInfo[i].meaning)});
  }
}

void AddWriter(const Trace& trace, const Writer& writer, Table* table) {
  for (size_t i = 0; i < proto::kLossCount; ++i) {
    const int64_t events = LostBy(writer, i);
    if (events == 0) continue;
    table->rows.push_back({RankOf(trace), trace.info.file, static_cast<int64_t>(writer.id),
                           writer.name, static_cast<int64_t>(writer.thread),
                           std::string(proto::kLossInfo[i].name), events,
                           static_cast<int64_t>(writer.events)});
  }
}

// What no writer counted: unreadable parts of files, records that never left CUPTI.
void AddNotes(const Run& run, Table* table) {
  for (const Trace& trace : run.traces) {
    for (const Damage& damage : trace.damage) {
      table->notes.push_back(trace.path + ": offset " + std::to_string(damage.offset) + ": " +
                             damage.what);
    }
    const int64_t without = SummarizeRank(trace).launches_without_kernel;
    if (without > 0) {
      table->notes.push_back(trace.info.file +
                             ": launches without a kernel record: " + std::to_string(without));
    }
  }
  if (table->rows.empty()) table->notes.push_back("no event was declared lost");
  for (const std::string& problem : run.problems) table->notes.push_back(problem);
}

}  // namespace

Table TabulateLosses(const Run& run, const ReportOptions&) {
  Table table{.name = "losses",
              .title = "Events that are missing, declared by reason",
              .columns = {{"rank", Unit::kCount},
                          {"file", Unit::kText, Shown::kDetail},
                          {"reason", Unit::kText},
                          {"events", Unit::kCount},
                          {"writers", Unit::kCount},
                          {"of_writers", Unit::kCount, Shown::kDetail},
                          {"meaning", Unit::kText, Shown::kProse}}};
  for (const Trace& trace : run.traces) AddReasons(trace, &table);
  AddNotes(run, &table);
  return table;
}

Table TabulateLossesByWriter(const Run& run, const ReportOptions&) {
  Table table{.name = "losses-by-writer",
              .title = "Events that are missing, by writer",
              .columns = {{"rank", Unit::kCount},
                          {"file", Unit::kText, Shown::kDetail},
                          {"writer", Unit::kCount},
                          {"thread", Unit::kText},
                          {"tid", Unit::kCount, Shown::kDetail},
                          {"reason", Unit::kText},
                          {"events", Unit::kCount},
                          {"stored", Unit::kCount}}};
  for (const Trace& trace : run.traces) {
    for (const Writer& writer : trace.writers) AddWriter(trace, writer, &table);
  }
  AddNotes(run, &table);
  return table;
}

}  // namespace ranktap::collector

#include <fmt/core.h>

#include <vector>

#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

int64_t LostBy(const Writer& writer, size_t reason) {
  return static_cast<int64_t>(writer.lost[reason] + writer.declared[reason]);
}

struct ReasonLoss {
  const Trace* trace = nullptr;
  const proto::LossInfo* reason = nullptr;
  int64_t events = 0, writers = 0;
};

const ColumnsOf<ReasonLoss> kReasonColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const ReasonLoss& loss) { return RankCell(*loss.trace); }},
    {"file", Unit::kText, "The trace file that the row was read from.",
     [](const ReasonLoss& loss) { return loss.trace->info.file; }, Shown::kDetail},
    {"reason", Unit::kText, "Why the events are missing.",
     [](const ReasonLoss& loss) { return std::string(loss.reason->name); }},
    {"events", Unit::kCount, "The events that are missing for this reason.",
     [](const ReasonLoss& loss) { return loss.events; }},
    {"writers", Unit::kCount, "The threads that lost some.",
     [](const ReasonLoss& loss) { return loss.writers; }},
    {"of_writers", Unit::kCount, "The threads that wrote events at all.",
     [](const ReasonLoss& loss) { return static_cast<int64_t>(loss.trace->writers.size()); },
     Shown::kDetail},
    {"meaning", Unit::kText, "How the loss affects the answers.",
     [](const ReasonLoss& loss) { return std::string(loss.reason->meaning); }, Shown::kProse},
};

void AddReasons(const Trace& trace, std::vector<ReasonLoss>* losses) {
  for (size_t i = 0; i < proto::kLossCount; ++i) {
    ReasonLoss loss{.trace = &trace, .reason = &proto::kLossInfo[i]};
    for (const Writer& writer : trace.writers) {
      const int64_t events = LostBy(writer, i);
      loss.events += events;
      loss.writers += events > 0 ? 1 : 0;
    }
    if (loss.events != 0) losses->push_back(loss);
  }
}

struct WriterLoss {
  const Trace* trace = nullptr;
  const Writer* writer = nullptr;
  const proto::LossInfo* reason = nullptr;
  int64_t events = 0;
};

const ColumnsOf<WriterLoss> kWriterColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const WriterLoss& loss) { return RankCell(*loss.trace); }},
    {"file", Unit::kText, "The trace file that the row was read from.",
     [](const WriterLoss& loss) { return loss.trace->info.file; }, Shown::kDetail},
    {"writer", Unit::kCount, "The writer's number in the file; each thread has one.",
     [](const WriterLoss& loss) { return int64_t{loss.writer->id}; }},
    {"thread", Unit::kText, "The thread's name.",
     [](const WriterLoss& loss) { return loss.writer->name; }},
    {"tid", Unit::kCount, "The thread's id in the operating system.",
     [](const WriterLoss& loss) { return int64_t{loss.writer->thread}; }, Shown::kDetail},
    {"reason", Unit::kText, "Why the events are missing.",
     [](const WriterLoss& loss) { return std::string(loss.reason->name); }},
    {"events", Unit::kCount, "The events of this thread that are missing for this reason.",
     [](const WriterLoss& loss) { return loss.events; }},
    {"stored", Unit::kCount, "The events of this thread that the file holds.",
     [](const WriterLoss& loss) { return static_cast<int64_t>(loss.writer->events); }},
};

void AddWriter(const Trace& trace, const Writer& writer, std::vector<WriterLoss>* losses) {
  for (size_t i = 0; i < proto::kLossCount; ++i) {
    const int64_t events = LostBy(writer, i);
    if (events != 0) losses->push_back({&trace, &writer, &proto::kLossInfo[i], events});
  }
}

// Losses that no writer counted: unreadable parts of files, records that never left CUPTI.
void AddNotes(const Run& run, Table* table) {
  for (const Trace& trace : run.traces) {
    for (const Damage& damage : trace.damage) {
      table->notes.push_back(
          fmt::format("{}: offset {}: {}", trace.path, damage.offset, damage.what));
    }
    if (trace.kernel_counters.size() > 0) {
      table->notes.push_back(
          fmt::format("{}: {} kernels ran one at a time for hardware counters: report counters",
                      RankName(trace), trace.kernel_counters.size()));
    }
    if (trace.not_read > 0) {
      table->notes.push_back(fmt::format("{}: {} events are not read, most of them {}",
                                         RankName(trace), trace.not_read, trace.not_read_most));
    }
    const int64_t without = SummarizeRank(trace).launches_without_kernel;
    if (without > 0) {
      table->notes.push_back(
          fmt::format("{}: launches without a kernel record: {}", trace.info.file, without));
    }
  }
  if (table->rows.empty()) table->notes.push_back("no event was declared lost");
  for (const std::string& problem : run.problems) table->notes.push_back(problem);
}

}  // namespace

Table TabulateLosses(const Run& run, const ReportOptions&) {
  std::vector<ReasonLoss> losses;
  for (const Trace& trace : run.traces) AddReasons(trace, &losses);
  Table table = TableOf("Events that are missing, declared by reason", kReasonColumns, losses);
  AddNotes(run, &table);
  return table;
}

Table TabulateLossesByWriter(const Run& run, const ReportOptions&) {
  std::vector<WriterLoss> losses;
  for (const Trace& trace : run.traces) {
    for (const Writer& writer : trace.writers) AddWriter(trace, writer, &losses);
  }
  Table table = TableOf("Events that are missing, by writer", kWriterColumns, losses);
  AddNotes(run, &table);
  return table;
}

}  // namespace ranktap::collector

#include <fmt/core.h>

#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/reports.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

Cell ShareOf(double part, uint64_t whole) {
  return whole == 0 ? Cell() : Cell(100.0 * part / static_cast<double>(whole));
}

struct CostLine {
  const Trace* trace = nullptr;
  const v1::Cost* cost = nullptr;

  bool is_timed() const { return cost->callback_ticks() > 0; }
  double hook_ns() const { return InNs(cost->callback_ticks()); }
  double stall_ns() const { return InNs(cost->stall_max_ticks()); }
  uint64_t cpu_ns() const { return cost->drain_cpu_ns() + cost->sender_cpu_ns(); }

 private:
  double InNs(uint64_t ticks) const { return static_cast<double>(ticks) * trace->host_ns_per_tick; }
};

Cell Number(uint64_t value) { return static_cast<int64_t>(value); }

Cell IfTimed(const CostLine& line, double ns) {
  return line.is_timed() ? Cell(static_cast<int64_t>(ns)) : Cell();
}

Cell HooksPercent(const CostLine& line) {
  return line.is_timed() ? ShareOf(line.hook_ns(), line.cost->watched_ns()) : Cell();
}

Cell MeanNs(const CostLine& line) {
  const uint64_t hooks = line.cost->callbacks() + line.cost->polls();
  if (hooks == 0) return {};
  return IfTimed(line, line.hook_ns() / static_cast<double>(hooks));
}

Cell BudgetPercent(const CostLine& line) {
  const auto ppm = static_cast<double>(line.cost->budget_ppm());
  return ppm == 0 ? Cell() : Cell(ppm / 1e4);
}

const ColumnsOf<CostLine> kCostColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const CostLine& line) { return RankCell(*line.trace); }},
    {"file", Unit::kText, "The trace file that the row was read from.",
     [](const CostLine& line) { return line.trace->info.file; }, Shown::kDetail},
    {"watched_ns", Unit::kNs, "The time since the agent came into the process.",
     [](const CostLine& line) { return Number(line.cost->watched_ns()); }},
    {"events", Unit::kCount, "The events that ranktap recorded.",
     [](const CostLine& line) { return Number(line.cost->callbacks()); }},
    {"polls", Unit::kCount,
     "Event queries that found work not done; ranktap counts them and does not record them.",
     [](const CostLine& line) { return Number(line.cost->polls()); }, Shown::kDetail},
    {"hooks_ns", Unit::kNs,
     "The time that the program's threads spent in ranktap's hooks, measured on 1 call in 64.",
     [](const CostLine& line) { return IfTimed(line, line.hook_ns()); }},
    {"hooks_percent", Unit::kPercent, "The hooks' time as a share of the time watched.",
     [](const CostLine& line) { return HooksPercent(line); }},
    {"mean_ns", Unit::kNs, "The mean time of one hook.",
     [](const CostLine& line) { return MeanNs(line); }, Shown::kDetail},
    {"longest_ns", Unit::kNs, "The longest hook seen, of the 1 call in 64 that is measured.",
     [](const CostLine& line) { return IfTimed(line, line.stall_ns()); }, Shown::kDetail},
    {"own_cpu_ns", Unit::kNs, "The CPU time of ranktap's own threads.",
     [](const CostLine& line) { return Number(line.cpu_ns()); }},
    {"own_cpu_percent", Unit::kPercent, "That CPU time as a share of the time watched.",
     [](const CostLine& line) {
       return ShareOf(static_cast<double>(line.cpu_ns()), line.cost->watched_ns());
     }},
    {"drain_cpu_ns", Unit::kNs, "The CPU time of the thread that reads CUPTI's buffers.",
     [](const CostLine& line) { return Number(line.cost->drain_cpu_ns()); }, Shown::kDetail},
    {"sender_cpu_ns", Unit::kNs, "The CPU time of the thread that sends.",
     [](const CostLine& line) { return Number(line.cost->sender_cpu_ns()); }, Shown::kDetail},
    {"bytes", Unit::kBytes, "The bytes that ranktap sent to the collector.",
     [](const CostLine& line) { return Number(line.cost->bytes()); }},
    {"frames", Unit::kCount, "The messages that ranktap sent to the collector.",
     [](const CostLine& line) { return Number(line.cost->frames()); }, Shown::kDetail},
    {"budget_percent", Unit::kPercent,
     "The share of the time that ranktap was allowed to cost (--budget).",
     [](const CostLine& line) { return BudgetPercent(line); }, Shown::kDetail},
    {"steps_down", Unit::kCount, "How often ranktap recorded less to stay within the budget.",
     [](const CostLine& line) { return Number(line.cost->steps_down()); }},
    {"level", Unit::kText, "The level of capture at the end.",
     [](const CostLine& line) { return line.trace->info.level; }},
};

void AddDecisions(const Trace& trace, Table* table) {
  for (const Gap& gap : trace.gaps) {
    if (gap.reason != v1::Gap::REASON_BUDGET) continue;
    const std::string who = trace.info.rank ? fmt::format("rank {}", *trace.info.rank)
                                            : fmt::format("pid {}", trace.info.pid);
    table->notes.push_back(
        fmt::format("{} after {}: {}", who, FormatNs(gap.start - trace.first_ns), gap.detail));
  }
}

// "rank 0: between steps the program stood still for 212.0 ms, while operators and memory were
// begun or ended 8 times".
void AddStandstill(const Trace& trace, Table* table) {
  int64_t ns = 0;
  size_t count = 0;
  for (const uint32_t row : RangesIn(trace, kPhaseDomain)) {
    if (trace.dictionary.String(trace.ranges.name[row]) != proto::kStandstillPhase) continue;
    ns += trace.ranges.end[row] - trace.ranges.start[row];
    ++count;
  }
  if (count == 0) return;
  table->notes.push_back(fmt::format(
      "{}: between steps the program stood still for {}, while operators and memory were begun or "
      "ended {}",
      RankName(trace), FormatNs(ns), Counted(count, "time")));
}

}  // namespace

Table TabulateCost(const Run& run, const ReportOptions&) {
  std::vector<CostLine> lines;
  for (const Trace& trace : run.traces) {
    if (trace.is_ours()) lines.push_back({&trace, &trace.cost});
  }
  Table table = TableOf("What ranktap itself cost, by rank", kCostColumns, lines);
  for (const CostLine& line : lines) {
    AddDecisions(*line.trace, &table);
    AddStandstill(*line.trace, &table);
  }
  table.notes.push_back(lines.empty()
                            ? "other tools' files do not say what those cost"
                            : "hooks: time of the program's threads, every 64th event timed, "
                              "without what CUPTI does around them; own cpu: our two threads");
  return table;
}

}  // namespace ranktap::collector

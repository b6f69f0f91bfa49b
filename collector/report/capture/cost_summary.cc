
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

Cell ShareOf(double part, uint64_t whole) {
  return whole == 0 ? Cell() : Cell(100.0 * part / static_cast<double>(whole));
}

std::vector<Cell> RowOf(const Trace& trace) {
  const v1::Cost& cost = trace.cost;
  const auto number = [](uint64_t value) { return static_cast<int64_t>(value); };
  const double hook_ns = static_cast<double>(cost.callback_ticks()) * trace.host_ns_per_tick;
  const double stall_ns = static_cast<double>(cost.stall_max_ticks()) * trace.host_ns_per_tick;
  const uint64_t cpu_ns = cost.drain_cpu_ns() + cost.sender_cpu_ns();
  const bool is_timed = cost.callback_ticks() > 0;
  const bool has_events = cost.callbacks() > 0 && is_timed;
  return {trace.info.rank ? Cell(int64_t{*trace.info.rank}) : Cell(),
          trace.info.file,
          number(cost.watched_ns()),
          number(cost.callbacks()),
          is_timed ? Cell(static_cast<int64_t>(hook_ns)) : Cell(),
          is_timed ? ShareOf(hook_ns, cost.watched_ns()) : Cell(),
          has_events ? Cell(static_cast<int64_t>(hook_ns / static_cast<double>(cost.callbacks())))
                     : Cell(),
          is_timed ? Cell(static_cast<int64_t>(stall_ns)) : Cell(),
          number(cpu_ns),
          ShareOf(static_cast<double>(cpu_ns), cost.watched_ns()),
          number(cost.drain_cpu_ns()),
          number(cost.sender_cpu_ns()),
          number(cost.bytes()),
          number(cost.frames()),
          cost.budget_ppm() == 0 ? Cell() : Cell(static_cast<double>(cost.budget_ppm()) / 1e4),
          number(cost.steps_down()),
          trace.info.level};
}

void AddDecisions(const Trace& trace, Table* table) {
  for (const Gap& gap : trace.gaps) {
    if (gap.reason != v1::Gap::REASON_BUDGET) continue;
    const std::string who = trace.info.rank ? "rank " + std::to_string(*trace.info.rank)
                                            : "pid " + std::to_string(trace.info.pid);
    const int64_t after_ms = (gap.start - trace.first_ns) / 1'000'000;
    table->notes.push_back(who + " after " + std::to_string(after_ms) + " ms: " + gap.detail);
  }
}

}  // namespace

Table TabulateCost(const Run& run, const ReportOptions&) {
  Table table{.name = "cost",
              .title = "What ranktap itself cost, by rank",
              .columns = {{"rank", Unit::kCount},
                          {"file", Unit::kText, Shown::kDetail},
                          {"watched_ns", Unit::kNs},
                          {"events", Unit::kCount},
                          {"hooks_ns", Unit::kNs},
                          {"hooks_percent", Unit::kPercent},
                          {"mean_ns", Unit::kNs, Shown::kDetail},
                          {"longest_ns", Unit::kNs, Shown::kDetail},
                          {"own_cpu_ns", Unit::kNs},
                          {"own_cpu_percent", Unit::kPercent},
                          {"drain_cpu_ns", Unit::kNs, Shown::kDetail},
                          {"sender_cpu_ns", Unit::kNs, Shown::kDetail},
                          {"bytes", Unit::kBytes},
                          {"frames", Unit::kCount, Shown::kDetail},
                          {"budget_percent", Unit::kPercent, Shown::kDetail},
                          {"steps_down", Unit::kCount},
                          {"level", Unit::kText}}};
  bool any = false;
  for (const Trace& trace : run.traces) {
    if (trace.origin != TraceOrigin::kCapture) continue;
    any = true;
    table.rows.push_back(RowOf(trace));
    AddDecisions(trace, &table);
  }
  table.notes.push_back(any ? "hooks: time of the program's threads, every 64th event timed, "
                              "without what CUPTI does around them; own cpu: our two threads"
                            : "other tools' files do not say what those cost");
  return table;
}

}  // namespace ranktap::collector

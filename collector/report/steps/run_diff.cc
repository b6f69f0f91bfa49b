#include "collector/report/steps/run_diff.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <tuple>

#include "collector/report/cells.h"
#include "collector/report/claims/transfer.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/mann_whitney.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

// Of the step: what is new or gone, and less than this, does not stand before what changed.
constexpr double kWorthATop = 0.01;

double Mean(const std::vector<double>& values, size_t count) {
  return count == 0
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(count);
}

double PerStep(int64_t calls, size_t steps) {
  return static_cast<double>(calls) / static_cast<double>(std::max<size_t>(steps, 1));
}

std::string SpanOf(const std::vector<int64_t>& ids) {
  if (ids.empty()) return "-";
  return ids.size() == 1 ? fmt::format("{}", ids[0])
                         : fmt::format("{} to {}", ids.front(), ids.back());
}

DiffRow Compare(const SampleKey& key, RunSamples* a, RunSamples* b, bool test) {
  Samples& of_a = a->by_key[key];
  Samples& of_b = b->by_key[key];
  const size_t steps_a = a->steps_of(key.first), steps_b = b->steps_of(key.first);
  of_a.ns.resize(steps_a);
  of_b.ns.resize(steps_b);
  DiffRow row{.key = key,
              .before = Mean(of_a.ns, steps_a),
              .after = Mean(of_b.ns, steps_b),
              .before_calls = PerStep(of_a.calls, steps_a),
              .after_calls = PerStep(of_b.calls, steps_b),
              .fewest_steps = std::min(steps_a, steps_b),
              .p_value = {},
              .ids = {}};
  if (!of_a.ids.empty() || !of_b.ids.empty()) {
    row.ids = fmt::format("{}; {}", SpanOf(of_a.ids), SpanOf(of_b.ids));
  }
  if (test && row.fewest_steps >= kLeastSteps) row.p_value = MannWhitney(of_a.ns, of_b.ns);
  return row;
}

std::vector<DiffRow> CompareAll(RunSamples* a, RunSamples* b, bool test) {
  std::set<SampleKey> keys;
  for (const RunSamples* const run : {a, b}) {
    for (const auto& [key, samples] : run->by_key) keys.insert(key);
  }
  std::vector<DiffRow> rows;
  double step = 0;
  for (const SampleKey& key : keys) {
    rows.push_back(Compare(key, a, b, test));
    if (key.first == SampleKind::kStep) step = std::max(rows.back().before, rows.back().after);
  }
  SortDiffRows(step, &rows);
  return rows;
}

// Nobody calls a cause, and samples count no calls.
Cell CallsCell(const DiffRow& row, double calls) {
  const SampleKind kind = row.key.first;
  const bool is_part =
      kind == SampleKind::kCause || kind == SampleKind::kHost || kind == SampleKind::kLine;
  return is_part ? Cell() : Cell(calls);
}

Cell Significance(const DiffRow& row) {
  if (row.p_value) return *row.p_value < kSignificant ? "yes" : "no";
  return IsOfWindows(row.key.first) && row.fewest_steps < kLeastSteps
             ? Cell(fmt::format("of {}", Counted(row.fewest_steps, "step")))
             : Cell();
}

const ColumnsOf<DiffRow> kRunDiffColumns = {
    {"kind", Unit::kText,
     "What is compared: a step, cause, host's place, phase, kernel, line, module, range or "
     "operator.",
     [](const DiffRow& row) { return NameOf(row.key.first); }},
    {"name", Unit::kText, "The name of what is compared.",
     [](const DiffRow& row) { return row.key.second; }},
    {"only_in", Unit::kText, "The run that alone has it.",
     [](const DiffRow& row) {
       return row.is_new() ? Cell("after") : row.is_gone() ? Cell("before") : Cell();
     }},
    {"before_ns", Unit::kNs, "The time a step in RUN1.",
     [](const DiffRow& row) { return std::llround(row.before); }},
    {"after_ns", Unit::kNs, "The time a step in RUN2.",
     [](const DiffRow& row) { return std::llround(row.after); }},
    {"diff_ns", Unit::kNs, "The time a step in RUN2 less that in RUN1.",
     [](const DiffRow& row) { return std::llround(row.change()); }},
    {"change_percent", Unit::kPercent, "The difference as a share of RUN1.",
     [](const DiffRow& row) {
       return row.before == 0 ? Cell() : Cell(100 * row.change() / row.before);
     }},
    {"before_calls", Unit::kCount, "The calls a step in RUN1.",
     [](const DiffRow& row) { return CallsCell(row, row.before_calls); }, Shown::kDetail},
    {"after_calls", Unit::kCount, "The calls a step in RUN2.",
     [](const DiffRow& row) { return CallsCell(row, row.after_calls); }, Shown::kDetail},
    {"ids", Unit::kText, "The numbers in RUN1 and RUN2 of names that share the row.",
     [](const DiffRow& row) { return row.ids.empty() ? Cell() : Cell(row.ids); }, Shown::kDetail},
    {"p_value", Unit::kCount, "The p-value of Mann and Whitney's test over steps.",
     [](const DiffRow& row) { return row.p_value ? Cell(*row.p_value) : Cell(); }, Shown::kDetail},
    {"significant", Unit::kText,
     "yes if the p_value is small enough; \"of 1 step\": fewer than five were recorded.",
     [](const DiffRow& row) { return Significance(row); }},
};

// "10 steps, operators of 1"
std::string DescribeSteps(const RunSamples& samples) {
  const size_t all = samples.steps_of(SampleKind::kStep);
  const size_t recorded = samples.steps_of(SampleKind::kOperator);
  return Counted(all, "step") +
         (recorded == all || recorded == 0 ? "" : fmt::format(", operators of {}", recorded));
}

std::string DescribeRun(const Run& run, const RunSamples& samples) {
  return fmt::format("{}, {}, {}", run.path, Counted(run.traces.size(), "rank"),
                     samples.has_steps ? DescribeSteps(samples)
                                       : "no steps were found: each rank's trace counts as one");
}

}  // namespace

void SortDiffRows(double step, std::vector<DiffRow>* rows) {
  const auto place = [step](const DiffRow& row) {
    const bool is_of_one = (row.is_new() || row.is_gone()) && !row.is_maybe_missed();
    const bool leads = is_of_one && std::abs(row.change()) >= kWorthATop * step;
    return std::tuple(row.key.first != SampleKind::kStep, !leads, -std::abs(row.change()));
  };
  SortRows(rows, [place](const DiffRow& x, const DiffRow& y) { return place(x) < place(y); });
}

Table TabulateDiff(const Run& before, const Run& after) {
  const bool tells_waiting = TellsWaiting(before) && TellsWaiting(after);
  RunSamples a = SampleRun(before, tells_waiting), b = SampleRun(after, tells_waiting);
  JoinNumberedRanges(&a, &b);
  JoinMovedLines(&a, &b);
  const bool has_steps = a.has_steps && b.has_steps;
  const bool test = has_steps && std::min(a.steps[0], b.steps[0]) >= kLeastSteps;
  RunDiff diff{.rows = CompareAll(&a, &b, test), .has_steps = has_steps};
  for (const auto& [run, which] : {std::pair(&after, "after"), std::pair(&before, "before")}) {
    if (const std::string why = WhyUndecided(*run); !why.empty()) {
      diff.undecided = fmt::format("{}, {}", which, why);
    }
  }
  Table table = TableOf(DescribeDiff(diff), kRunDiffColumns, diff.rows);
  table.notes.push_back(fmt::format("before: {}", DescribeRun(before, a)));
  table.notes.push_back(fmt::format("after: {}", DescribeRun(after, b)));
  table.notes.push_back(
      "times are means per step of a rank; causes and the host's places add up to the step; "
      "a module is without the modules within it, as are ranges and operators");
  if (a.steps_of(SampleKind::kLine) + b.steps_of(SampleKind::kLine) > 0) {
    table.notes.push_back(
        "a line has the time of the calls of packages below it, and the number that it has after");
  }
  table.notes.push_back(
      test ? "significant compares the steps of these two runs: another run of one program may "
             "differ by more than its steps do"
           : fmt::format("no test of significance: it needs {} steps of each run", kLeastSteps));
  return table;
}

}  // namespace ranktap::collector

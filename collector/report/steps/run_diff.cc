#include "collector/report/steps/run_diff.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "collector/facts/device_steps.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/framework/timed_steps.h"
#include "collector/facts/steps.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

constexpr double kSignificant = 0.01;
constexpr size_t kLeastSteps = 5;  // of a run, for a test of significance
// Up to where p values are exact: by the normal distribution 5 steps against 5 are never
// significant, whatever they took.
constexpr size_t kExactOne = 8, kExactBoth = 40;

// In the order of the table.
enum class Kind : uint8_t { kStep, kPhase, kKernel, kModule, kOperator };
constexpr size_t kKinds = 5;

// One thing in one run: its time in each step of each rank that recorded things of its kind.
struct Samples {
  std::vector<double> ns;
  int64_t calls = 0;
};
using Key = std::pair<Kind, std::string>;

struct RunSamples {
  std::map<Key, Samples> by_key;
  // Steps of all ranks, by kind: operators and modules are recorded in windows only.
  std::array<size_t, kKinds> steps{};
  bool has_steps = true;  // false: some rank's whole trace is one
  size_t steps_of(const Key& key) const { return steps[static_cast<size_t>(key.first)]; }
};

class Sampler {
 public:
  explicit Sampler(const Run& run) {
    for (const Trace& trace : run.traces) AddTrace(trace);
    for (auto& [key, samples] : result_.by_key) samples.ns.resize(result_.steps_of(key));
  }
  RunSamples Take() { return std::move(result_); }

 private:
  // The times of each step of a trace, for one kind.
  using StepColumns = std::vector<size_t>;

  // The columns are the steps that `recorded` holds, those after the warm-up; where it holds no
  // such, all of it.
  StepColumns ColumnsOf(const std::vector<Step>& steps, Kind kind,
                        const std::vector<bool>& recorded) {
    bool any = false;
    for (size_t i = 0; i < steps.size(); ++i) any |= recorded[i] && !steps[i].warm_up;
    StepColumns columns(steps.size(), SIZE_MAX);
    for (size_t i = 0; i < steps.size(); ++i) {
      if (recorded[i] && !(any && steps[i].warm_up)) {
        columns[i] = result_.steps[static_cast<size_t>(kind)]++;
      }
    }
    return columns;
  }

  void AddTrace(const Trace& trace) {
    steps_ = &DetectSteps(trace);
    whole_ = steps_->list.empty();
    if (whole_) {
      result_.has_steps = false;
      for (size_t& steps : result_.steps) ++steps;
      Add({Kind::kStep, "step"}, result_.steps[0] - 1, trace.last_ns - trace.first_ns);
    }
    const std::vector<bool> all(steps_->list.size(), true);
    columns_ = ColumnsOf(steps_->list, Kind::kStep, all);
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i] == SIZE_MAX) continue;
      Add({Kind::kStep, "step"}, columns_[i], StepsOnDevice(trace).list[i].length());
    }
    AddRanges(trace, Kind::kPhase, RangesIn(trace, kPhaseDomain), all);
    AddModules(trace);
    AddKernels(trace);
    AddOperators(trace);
  }

  size_t ColumnOf(Kind kind, int64_t step) const {
    if (whole_) return result_.steps[static_cast<size_t>(kind)] - 1;
    return step < 0 ? SIZE_MAX : columns_[static_cast<size_t>(step)];
  }

  void AddRanges(const Trace& trace, Kind kind, const std::vector<uint32_t>& rows,
                 const std::vector<bool>& recorded) {
    columns_ = ColumnsOf(steps_->list, kind, recorded);
    for (const uint32_t row : rows) {
      const int64_t start = trace.ranges.start[row];
      Add({kind, std::string(trace.dictionary.String(trace.ranges.name[row]))},
          ColumnOf(kind, StepIndexAt(*steps_, start)), trace.ranges.end[row] - start);
    }
  }
  void AddModules(const Trace& trace) {
    const std::vector<uint32_t> rows = RangesIn(trace, kModuleDomain);
    std::vector<int64_t> starts;
    for (const uint32_t row : rows) starts.push_back(trace.ranges.start[row]);
    AddRanges(trace, Kind::kModule, rows, RecordedSteps(trace, starts));
  }
  void AddKernels(const Trace& trace) {
    const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
    columns_ = ColumnsOf(steps_->list, Kind::kKernel, std::vector<bool>(steps_->list.size(), true));
    StepFinder finder(trace, *steps_);
    std::map<std::pair<uint32_t, DeviceSpan::Table>, std::string> names;
    for (const DeviceSpan& span : spans) {
      const size_t at = ColumnOf(Kind::kKernel, finder.IndexOf(span));
      if (span.table != DeviceSpan::Table::kKernel) {
        Add({Kind::kKernel, NameOf(trace, span)}, at, span.end - span.start);
        continue;
      }
      std::string& name = names[{span.name, span.table}];
      if (name.empty()) name = NameOf(trace, span);
      Add({Kind::kKernel, name}, at, span.end - span.start);
    }
  }
  void AddOperators(const Trace& trace) {
    const Operators& ops = trace.operators;
    columns_ = ColumnsOf(steps_->list, Kind::kOperator,
                         RecordedSteps(trace, {ops.start.data(), ops.size()}));
    StepFinder finder(trace, *steps_);
    for (size_t i = 0; i < ops.size(); ++i) {
      if (ops.kind[i] != static_cast<uint8_t>(OperatorKind::kOperator)) continue;
      Add({Kind::kOperator, std::string(trace.dictionary.String(ops.name[i]))},
          ColumnOf(Kind::kOperator, finder.IndexAt(ops.start[i])), ops.end[i] - ops.start[i]);
    }
  }

  void Add(const Key& key, size_t column, int64_t ns) {
    if (column == SIZE_MAX) return;
    Samples& samples = result_.by_key[key];
    if (samples.ns.size() <= column) samples.ns.resize(column + 1);
    samples.ns[column] += static_cast<double>(ns);
    ++samples.calls;
  }

  RunSamples result_;
  const StepList* steps_ = nullptr;  // of the trace that is being added
  bool whole_ = false;
  StepColumns columns_;
};

double Mean(const std::vector<double>& values, size_t count) {
  return count == 0
             ? 0
             : std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(count);
}

// How many of the ways to pick `na` of 1..na + nb have each sum, less the smallest sum.
std::vector<double> CountsOfU(size_t na, size_t nb) {
  const size_t most = na * nb;
  std::vector<std::vector<double>> ways(na + 1, std::vector<double>(most + 1));
  ways[0][0] = 1;
  for (size_t item = 0; item < na + nb; ++item) {
    for (size_t picked = std::min(na, item + 1); picked > 0; --picked) {
      // The k-th pick adds its distance from k.
      const size_t adds = item + 1 - picked;
      for (size_t u = most + 1; u-- > adds;) ways[picked][u] += ways[picked - 1][u - adds];
    }
  }
  return ways[na];
}

// P(U >= u or U <= na nb - u) where nothing differs.
double ExactP(double u, size_t na, size_t nb) {
  const std::vector<double> counts = CountsOfU(na, nb);
  const double far = std::max(u, static_cast<double>(na * nb) - u);
  double all = 0, beyond = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    all += counts[i];
    if (static_cast<double>(i) >= far) beyond += counts[i];
  }
  return std::min(1.0, 2 * beyond / all);
}

struct DiffRow {
  Key key;
  double before = 0, after = 0;
  double before_calls = 0, after_calls = 0;
  std::optional<double> p_value;  // nullopt: not tested
  double change() const { return after - before; }
};

double PerStep(int64_t calls, size_t steps) {
  return static_cast<double>(calls) / static_cast<double>(std::max<size_t>(steps, 1));
}

DiffRow Compare(const Key& key, RunSamples* a, RunSamples* b, bool test) {
  Samples& of_a = a->by_key[key];
  Samples& of_b = b->by_key[key];
  const size_t steps_a = a->steps_of(key), steps_b = b->steps_of(key);
  of_a.ns.resize(steps_a);
  of_b.ns.resize(steps_b);
  DiffRow row{.key = key,
              .before = Mean(of_a.ns, steps_a),
              .after = Mean(of_b.ns, steps_b),
              .before_calls = PerStep(of_a.calls, steps_a),
              .after_calls = PerStep(of_b.calls, steps_b),
              .p_value = {}};
  if (test && std::min(steps_a, steps_b) >= kLeastSteps)
    row.p_value = MannWhitney(of_a.ns, of_b.ns);
  return row;
}

// The step first, then the largest difference.
std::vector<DiffRow> CompareAll(RunSamples* a, RunSamples* b, bool test) {
  std::set<Key> keys;
  for (const auto& [key, samples] : a->by_key) keys.insert(key);
  for (const auto& [key, samples] : b->by_key) keys.insert(key);
  std::vector<DiffRow> rows;
  for (const Key& key : keys) rows.push_back(Compare(key, a, b, test));
  SortRows(&rows, [](const DiffRow& x, const DiffRow& y) {
    const bool x_step = x.key.first == Kind::kStep, y_step = y.key.first == Kind::kStep;
    if (x_step != y_step) return x_step;
    return std::abs(x.change()) > std::abs(y.change());
  });
  return rows;
}

constexpr std::array<const char*, kKinds> kKindNames = {"step", "phase", "kernel", "module",
                                                        "operator"};

const ColumnsOf<DiffRow> kColumns = {
    {"kind", Unit::kText, "What is compared: a step, phase, kernel, module or operator.",
     [](const DiffRow& row) { return kKindNames[static_cast<size_t>(row.key.first)]; }},
    {"name", Unit::kText, "The name of what is compared.",
     [](const DiffRow& row) { return row.key.second; }},
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
     [](const DiffRow& row) { return row.before_calls; }, Shown::kDetail},
    {"after_calls", Unit::kCount, "The calls a step in RUN2.",
     [](const DiffRow& row) { return row.after_calls; }, Shown::kDetail},
    {"p_value", Unit::kCount, "The p-value of Mann and Whitney's test over steps.",
     [](const DiffRow& row) { return row.p_value ? Cell(*row.p_value) : Cell(); }, Shown::kDetail},
    {"significant", Unit::kText, "yes if the p_value is small enough.",
     [](const DiffRow& row) {
       return row.p_value ? Cell(*row.p_value < kSignificant ? "yes" : "no") : Cell();
     }},
};

// "10 steps, operators of 1"
std::string DescribeSteps(const RunSamples& samples) {
  const size_t all = samples.steps_of({Kind::kStep, ""});
  const size_t recorded = samples.steps_of({Kind::kOperator, ""});
  return Counted(all, "step") +
         (recorded == all || recorded == 0 ? "" : fmt::format(", operators of {}", recorded));
}

std::string DescribeRun(const Run& run, const RunSamples& samples) {
  return fmt::format(
      "{}, {}, {}", run.path, Counted(run.traces.size(), "rank"),
      samples.has_steps ? DescribeSteps(samples) : "no steps found, each rank's trace as one");
}

}  // namespace

double MannWhitney(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<std::pair<double, bool>> all;  // value, is of a
  for (const double value : a) all.emplace_back(value, true);
  for (const double value : b) all.emplace_back(value, false);
  std::sort(all.begin(), all.end());
  const auto n = static_cast<double>(all.size());
  double ranks_of_a = 0, ties = 0;
  bool any_ties = false;
  for (size_t i = 0; i < all.size();) {
    size_t end = i;
    while (end < all.size() && all[end].first == all[i].first) ++end;
    const auto equal = static_cast<double>(end - i);
    ties += equal * equal * equal - equal;
    any_ties |= equal > 1;
    const double rank = (static_cast<double>(i + 1) + static_cast<double>(end)) / 2;
    for (; i < end; ++i) ranks_of_a += all[i].second ? rank : 0;
  }
  const auto na = static_cast<double>(a.size()), nb = static_cast<double>(b.size());
  const double u = ranks_of_a - na * (na + 1) / 2;
  const double variance = na * nb / 12 * (n + 1 - ties / (n * (n - 1)));
  if (variance <= 0) return 1;
  if (!any_ties && std::min(a.size(), b.size()) <= kExactOne && a.size() + b.size() <= kExactBoth) {
    return ExactP(u, a.size(), b.size());
  }
  const double distance = std::max(0.0, std::abs(u - na * nb / 2) - 0.5);
  return std::erfc(distance / std::sqrt(variance) / std::sqrt(2.0));
}

Table TabulateDiff(const Run& before, const Run& after) {
  RunSamples a = Sampler(before).Take(), b = Sampler(after).Take();
  const bool test = a.has_steps && b.has_steps && std::min(a.steps[0], b.steps[0]) >= kLeastSteps;
  Table table = TableOf("Two runs, means per step of a rank", kColumns, CompareAll(&a, &b, test));
  table.notes.push_back(fmt::format("before: {}", DescribeRun(before, a)));
  table.notes.push_back(fmt::format("after: {}", DescribeRun(after, b)));
  if (!test) {
    table.notes.push_back(
        fmt::format("no test of significance: it needs {} steps of each run", kLeastSteps));
  }
  return table;
}

}  // namespace ranktap::collector

#include "collector/report/gate/gate.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "collector/report/columns.h"
#include "collector/report/gate/welch.h"
#include "collector/report/gate/workload.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/moved_lines.h"
#include "collector/report/steps/run_diff.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostRunsAdvised = 1000;
constexpr std::string_view kMemoryPeak = "memory-peak";

using RunList = std::vector<RunFigures>;

std::string SignedPercent(double percent) { return fmt::format("{:+.1f} %", percent); }
double AsPercent(double logarithm) { return 100 * std::expm1(logarithm); }

bool Matches(const GateLimit& limit, const SampleKey& key) {
  if (key.first != limit.kind) return false;
  return limit.pattern.empty() || ::fnmatch(limit.pattern.c_str(), key.second.c_str(), 0) == 0;
}

// nullopt: the run has no such thing.
std::optional<double> ValueOf(const RunFigures& run, const GateLimit& limit) {
  if (!limit.kind) return run.peak_bytes;
  std::optional<double> sum;
  for (const auto& [key, figure] : run.by_key) {
    if (Matches(limit, key)) sum = sum.value_or(0) + figure.ns;
  }
  return sum;
}

bool HasKind(const RunFigures& run, SampleKind kind) {
  return std::ranges::any_of(run.by_key,
                             [kind](const auto& entry) { return entry.first.first == kind; });
}

// Named twice, a run would seem to have no spread.
std::string WhyDoubled(const RunList& runs) {
  std::set<std::string> seen;
  for (const RunFigures& run : runs) {
    if (run.id.empty() || seen.insert(run.id).second) continue;
    return fmt::format("{} stands twice on one side, and a run counts once", run.path);
  }
  return "";
}

struct Values {
  std::vector<double> logs;
  double mean = 0;
  std::string missing;  // why a run has none
};

Values ValuesOf(const RunList& runs, const GateLimit& limit) {
  Values values;
  for (const RunFigures& run : runs) {
    const Result<double> value = FigureOf(run, limit);
    if (!value) {
      values.missing = value.message();
      return values;
    }
    values.logs.push_back(std::log(*value));
    values.mean += *value / static_cast<double>(runs.size());
  }
  return values;
}

// "4 runs a side would tell the change that was seen from 3 %"
std::string Advice(const MeanDifference& seen, double limit, double confidence, size_t fewest) {
  const double beyond = std::abs(seen.difference - limit);
  const size_t wanted =
      RunsThatWouldDo(beyond, seen.spread, confidence, kGatePower, kMostRunsAdvised);
  const double found =
      SmallestFound(std::max<size_t>(fewest, 2), seen.spread, confidence, kGatePower);
  return fmt::format(
      "at a spread of {} from run to run, {} a side tell a change from the limit where it is {} "
      "away, in 95 of 100 cases; {} would do for the change that was seen",
      FormatPercent(AsPercent(seen.spread)), Counted(std::max<size_t>(fewest, 2), "run"),
      FormatPercent(AsPercent(found)),
      wanted == 0 ? fmt::format("more than {} runs a side", kMostRunsAdvised)
                  : fmt::format("{} a side", Counted(wanted, "run")));
}

GateRow JudgeLimit(const RunList& base, const RunList& runs, const GateLimit& limit,
                   double confidence) {
  GateRow row{.limit = limit};
  const Values before = ValuesOf(base, limit), after = ValuesOf(runs, limit);
  row.why = before.missing.empty() ? after.missing : before.missing;
  if (!row.why.empty()) return row;
  row.before = before.mean;
  row.after = after.mean;
  const std::optional<MeanDifference> seen = CompareMeans(before.logs, after.logs);
  if (!seen) {
    row.change = 100 * (after.mean - before.mean) / before.mean;
    row.why =
        "one run a side does not tell how much runs differ: compare 3 runs a side, or tag a "
        "baseline of several";
    return row;
  }
  const double least = std::log1p(limit.percent / 100);
  row.change = AsPercent(seen->difference);
  row.low = AsPercent(seen->Low(confidence));
  row.high = AsPercent(seen->High(confidence));
  row.spread = AsPercent(seen->spread);
  const std::string interval = fmt::format("{}, between {} and {}", SignedPercent(*row.change),
                                           SignedPercent(*row.low), SignedPercent(*row.high));
  if (seen->Low(confidence) > least) {
    row.answer = GateAnswer::kRegression;
    row.why = fmt::format("{}: all of it is beyond the limit", interval);
  } else if (seen->High(confidence) <= least) {
    row.answer = GateAnswer::kNoRegression;
    row.why = fmt::format("{}: all of it is within the limit", interval);
  } else {
    row.why = fmt::format("{}: the limit is within; {}", interval,
                          Advice(*seen, least, confidence, std::min(base.size(), runs.size())));
  }
  return row;
}

DiffRow MeanRow(const SampleKey& key, const RunList& base, const RunList& runs, size_t steps) {
  DiffRow row{.key = key, .fewest_steps = steps, .p_value = {}, .ids = {}};
  const auto values = [&key](const RunList& list, double* ns, double* calls) {
    std::vector<double> all;
    for (const RunFigures& run : list) {
      const auto found = run.by_key.find(key);
      const RunFigure figure = found == run.by_key.end() ? RunFigure() : found->second;
      all.push_back(figure.ns);
      *ns += figure.ns / static_cast<double>(list.size());
      *calls += figure.calls / static_cast<double>(list.size());
    }
    return all;
  };
  const std::vector<double> before = values(base, &row.before, &row.before_calls);
  const std::vector<double> after = values(runs, &row.after, &row.after_calls);
  if (const auto seen = CompareMeans(before, after)) row.p_value = seen->PValue();
  return row;
}

TimeByLine MeanLines(const RunList& list) {
  TimeByLine lines;
  for (const RunFigures& run : list) {
    for (const auto& [key, figure] : run.by_key) {
      if (key.first != SampleKind::kLine) continue;
      lines[key.second] += figure.ns / static_cast<double>(list.size());
    }
  }
  return lines;
}

// Lines of the base under the numbers that they have in the runs.
RunList WithMovedLines(RunList base, const RunList& runs) {
  const auto moved = FindMovedLines(MeanLines(base), MeanLines(runs));
  for (RunFigures& run : base) {
    std::map<SampleKey, RunFigure> there;
    for (const auto& [name, after] : moved) {
      auto taken = run.by_key.extract({SampleKind::kLine, name});
      if (!taken.empty()) there[{SampleKind::kLine, after}] = taken.mapped();
    }
    run.by_key.merge(there);
  }
  return base;
}

// The runs as one of each side, for the judge's sentence.
RunDiff DiffOfMeans(const RunList& base, const RunList& runs) {
  RunDiff diff{.rows = {}, .has_steps = true, .of_runs = true, .undecided = {}};
  std::set<SampleKey> keys;
  size_t fewest = SIZE_MAX;
  for (const RunList* const list : {&base, &runs}) {
    for (const RunFigures& run : *list) {
      fewest = std::min(fewest, run.steps);
      if (diff.undecided.empty() && !run.undecided.empty()) {
        diff.undecided = fmt::format("{}, {}", run.path, run.undecided);
      }
      for (const auto& [key, figure] : run.by_key) keys.insert(key);
    }
  }
  diff.has_steps = fewest > 0;
  double step = 0;
  for (const SampleKey& key : keys) {
    diff.rows.push_back(MeanRow(key, base, runs, fewest));
    if (key.first == SampleKind::kStep) step = std::max(step, diff.rows.back().before);
  }
  SortDiffRows(step, &diff.rows);
  return diff;
}

GateAnswer AnswerOf(const std::vector<GateRow>& rows) {
  const auto any = [&rows](GateAnswer answer) {
    return std::ranges::any_of(rows, [answer](const GateRow& row) { return row.answer == answer; });
  };
  return any(GateAnswer::kRegression)   ? GateAnswer::kRegression
         : any(GateAnswer::kCannotTell) ? GateAnswer::kCannotTell
                                        : GateAnswer::kNoRegression;
}

std::string SentenceOn(const GateResult& gate, const std::string& judge) {
  const auto decides = std::ranges::find(gate.rows, gate.answer, &GateRow::answer);
  std::string word(NameOf(gate.answer));
  word[0] = static_cast<char>(word[0] - 'a' + 'A');
  return fmt::format("{}: {}: {}. {}", word, decides->limit.text, decides->why, judge);
}

// Time and bytes are columns of their own, because a column has one unit.
Cell NumberOf(const std::optional<double>& value, bool wanted) {
  return value && wanted ? Cell(static_cast<int64_t>(std::llround(*value))) : Cell();
}
Cell PercentCell(const std::optional<double>& percent) { return percent ? Cell(*percent) : Cell(); }

const ColumnsOf<GateRow> kGateColumns = {
    {"limit", Unit::kText, "What may grow by how much.",
     [](const GateRow& row) { return row.limit.text; }},
    {"answer", Unit::kText, "no regression, regression or cannot tell.",
     [](const GateRow& row) { return std::string(NameOf(row.answer)); }},
    {"before_ns", Unit::kNs, "The time a step, the mean of BASE.",
     [](const GateRow& row) { return NumberOf(row.before, row.limit.kind.has_value()); }},
    {"after_ns", Unit::kNs, "The time a step, the mean of RUN.",
     [](const GateRow& row) { return NumberOf(row.after, row.limit.kind.has_value()); }},
    {"before_bytes", Unit::kBytes, "The peak, the mean of BASE.",
     [](const GateRow& row) { return NumberOf(row.before, !row.limit.kind); }},
    {"after_bytes", Unit::kBytes, "The peak, the mean of RUN.",
     [](const GateRow& row) { return NumberOf(row.after, !row.limit.kind); }},
    {"change_percent", Unit::kPercent, "The change that was seen.",
     [](const GateRow& row) { return PercentCell(row.change); }},
    {"low_percent", Unit::kPercent, "The true change is above it, 99 % sure of all limits.",
     [](const GateRow& row) { return PercentCell(row.low); }},
    {"high_percent", Unit::kPercent, "The true change is below it, 99 % sure of all limits.",
     [](const GateRow& row) { return PercentCell(row.high); }},
    {"spread_percent", Unit::kPercent, "The standard deviation from one run to the next.",
     [](const GateRow& row) { return PercentCell(row.spread); }},
    {"why", Unit::kText, "What the answer rests on.", [](const GateRow& row) { return row.why; },
     Shown::kProse},
};

}  // namespace

std::optional<GateLimit> ParseGateLimit(std::string_view text) {
  const size_t at = text.rfind('>');
  if (at == std::string_view::npos || !text.ends_with('%')) return std::nullopt;
  const std::string_view what = text.substr(0, at);
  std::string_view number = text.substr(at + 1, text.size() - at - 2);
  while (number.ends_with(' ')) number.remove_suffix(1);
  GateLimit limit{.text = std::string(text), .kind = {}, .pattern = {}};
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), limit.percent);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  if (!std::isfinite(limit.percent) || limit.percent < 0) return std::nullopt;
  if (what == kMemoryPeak) return limit;
  if (what == NameOf(SampleKind::kStep)) {
    limit.kind = SampleKind::kStep;
    return limit;
  }
  const size_t colon = what.find(':');
  if (colon == std::string_view::npos || colon + 1 == what.size()) return std::nullopt;
  for (size_t k = 1; k < kSampleKinds; ++k) {
    const auto kind = static_cast<SampleKind>(k);
    if (what.substr(0, colon) != std::string(NameOf(kind)) + "s") continue;
    limit.kind = kind;
    limit.pattern = what.substr(colon + 1);
    return limit;
  }
  return std::nullopt;
}

Result<double> FigureOf(const RunFigures& run, const GateLimit& limit) {
  if (limit.kind && run.steps < kLeastSteps) {
    return Failure{fmt::format("{} has {}, and a mean needs {}", run.path,
                               Counted(run.steps, "step"), kLeastSteps)};
  }
  if (const auto value = ValueOf(run, limit); value && *value > 0) return *value;
  return Failure{
      fmt::format("{} has no {}", run.path, limit.text.substr(0, limit.text.rfind('>')))};
}

std::string WhyNotComparable(const RunList& base, const RunList& runs) {
  for (const RunList* const list : {&base, &runs}) {
    if (std::string why = WhyDoubled(*list); !why.empty()) return why;
  }
  const RunFigures& first = base.front();
  for (const RunList* const list : {&base, &runs}) {
    for (const RunFigures& run : *list) {
      for (const auto& [name, value] : first.must_agree) {
        const auto found = run.must_agree.find(name);
        const std::string other = found == run.must_agree.end() ? "" : found->second;
        if (other == value) continue;
        return fmt::format("{} differ: {} has {}, {} has {}", name, first.path,
                           value.empty() ? "none" : value, run.path,
                           other.empty() ? "none" : other);
      }
      if (HasKind(first, SampleKind::kKernel) != HasKind(run, SampleKind::kKernel)) {
        const bool lacks = HasKind(first, SampleKind::kKernel);
        return fmt::format("{} has no kernels, {} has some", lacks ? run.path : first.path,
                           lacks ? first.path : run.path);
      }
    }
  }
  return "";
}

std::string WhatALimitNames() {
  std::string names = fmt::format("{}, {}", NameOf(SampleKind::kStep), kMemoryPeak);
  for (size_t k = 1; k < kSampleKinds; ++k) {
    names += fmt::format(", {}s:NAME", NameOf(static_cast<SampleKind>(k)));
  }
  return names;
}

std::string_view NameOf(GateAnswer answer) {
  constexpr std::string_view kNames[] = {"no regression", "regression", "cannot tell"};
  return kNames[static_cast<size_t>(answer)];
}

GateResult Judge(const RunList& of_base, const RunList& runs,
                 const std::vector<GateLimit>& limits) {
  const RunList base = WithMovedLines(of_base, runs);
  GateResult gate{.base_runs = base.size(), .runs = runs.size()};
  const std::string differ = WhyNotComparable(base, runs);
  const double confidence = 1 - (1 - kGateConfidence) / static_cast<double>(limits.size());
  for (const GateLimit& limit : limits) {
    gate.rows.push_back(differ.empty() ? JudgeLimit(base, runs, limit, confidence)
                                       : GateRow{.limit = limit, .why = differ});
  }
  gate.answer = AnswerOf(gate.rows);
  const std::vector<OtherSetting> others = OtherSettings(base, runs);
  gate.sentence = SentenceOn(
      gate, DescribeDiff(DiffOfMeans(base, runs)) + DescribeWorkload(base, runs, others));
  for (const OtherSetting& other : others) {
    gate.notes.push_back(
        fmt::format("{} is \"{}\" and was \"{}\"", other.name, other.after, other.before));
  }
  return gate;
}

Table TabulateGate(const GateResult& gate) {
  Table table = TableOf(gate.sentence, kGateColumns, gate.rows);
  table.name = "diff";
  for (const GateRow& row : gate.rows) {
    if (gate.sentence.find(row.why) != std::string::npos) continue;
    table.notes.push_back(fmt::format("{}: {}", row.limit.text, row.why));
  }
  table.notes.insert(table.notes.end(), gate.notes.begin(), gate.notes.end());
  table.notes.push_back(fmt::format(
      "{} against {}: the unit is the run; Welch's test of logarithms, 99 % on each side for {} "
      "together",
      Counted(gate.base_runs, "run"), Counted(gate.runs, "run"),
      Counted(gate.rows.size(), "limit")));
  return table;
}

}  // namespace ranktap::collector

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "collector/facts/causes/waterfall.h"
#include "collector/report/cells.h"
#include "collector/report/claims/mean_step.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/find_insights.h"
#include "collector/report/jobs.h"
#include "collector/report/notes.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

struct InsightLine {
  const Insight* insight = nullptr;
  const Trace* trace = nullptr;
  int64_t step_ns = 0;
  std::string command = {};
};

Cell TextOrNothing(const std::string& text) { return text.empty() ? Cell() : Cell(text); }

Cell SavingCell(const InsightLine& line) {
  return line.insight->saving_ns ? Cell(*line.insight->saving_ns) : Cell();
}

Cell SavingShare(const InsightLine& line) {
  // A late rank's saving may be longer than the mean step of all.
  const bool is_part = line.insight->saving_ns && *line.insight->saving_ns <= line.step_ns;
  return is_part ? Percent(*line.insight->saving_ns, line.step_ns) : Cell();
}

Cell DeviceCell(const InsightLine& line) {
  return line.insight->device == kNone ? Cell() : Cell(int64_t{line.insight->device});
}

const ColumnsOf<InsightLine> kColumns = {
    {"rule", Unit::kText, "The name of the rule that found it.",
     [](const InsightLine& line) { return std::string(line.insight->rule); }},
    {"saving_ns", Unit::kNs, "The time a step that the job can save.",
     [](const InsightLine& line) { return SavingCell(line); }},
    {"saving_percent", Unit::kPercent, "The saving as a share of the mean step.",
     [](const InsightLine& line) { return SavingShare(line); }},
    {"lost_ns", Unit::kNs, "The time that it costs.",
     [](const InsightLine& line) { return line.insight->lost_ns; }, Shown::kDetail},
    {"count", Unit::kCount, "How often it happened in the run.",
     [](const InsightLine& line) { return line.insight->count; }, Shown::kDetail},
    {"rank", Unit::kCount, "The rank that loses most to it.",
     [](const InsightLine& line) { return RankCell(*line.trace); }},
    {"ranks", Unit::kCount, "The number of ranks that have it.",
     [](const InsightLine& line) { return line.insight->ranks; }, Shown::kDetail},
    {"device", Unit::kCount, "The number of the device.",
     [](const InsightLine& line) { return DeviceCell(line); }, Shown::kDetail},
    {"where", Unit::kText, "The operator, line or place.",
     [](const InsightLine& line) { return TextOrNothing(line.insight->where); }, Shown::kDetail},
    {"finding", Unit::kText, "A sentence that says what the rule found.",
     [](const InsightLine& line) { return line.insight->finding; }, Shown::kProse},
    {"advice", Unit::kText, "A sentence that says what to do about it.",
     [](const InsightLine& line) { return line.insight->advice; }, Shown::kProse},
    {"command", Unit::kText, "The command that shows its evidence.",
     [](const InsightLine& line) { return TextOrNothing(line.command); }, Shown::kDetail},
};

// Advice that saves nothing is none: the critical path bears none of what the rule found.
bool SavesNothing(const Insight& insight) {
  return insight.saving_ns.has_value() && *insight.saving_ns == 0;
}

// "ranktap report RUN syncs --ranks 3": of the rank, where a rule is asked of each and there are
// several.
std::string CommandFor(const Run& run, const Insight& insight, std::span<const InsightRule> rules) {
  const auto rule = std::ranges::find(rules, insight.rule, &InsightRule::name);
  if (rule == rules.end() || rule->evidence.empty()) return "";
  const std::optional<uint32_t> rank = run.traces[insight.trace].info.rank;
  const bool is_of_one = rule->of_rank != nullptr && rank && run.traces.size() > 1;
  return fmt::format("ranktap report RUN {}{}", rule->evidence,
                     is_of_one ? fmt::format(" --ranks {}", *rank) : "");
}

std::string TitleOf(size_t findings) {
  if (findings == 0) return "No rule found anything that costs time";
  return "What costs time, and what following the advice would save of each step at most";
}

void AddNotes(const Insights& insights, Table* table) {
  table->notes.push_back(fmt::format("{} checked", Counted(insights.checked, "rule")) +
                         (insights.left_out == 0
                              ? ""
                              : fmt::format("; {} more of rules that fired at several places",
                                            Counted(insights.left_out, "finding"))));
  std::map<std::string_view, std::string> by_reason;
  for (const Insights::Unchecked& rule : insights.unchecked) {
    std::string& names = by_reason[rule.why];
    names += (names.empty() ? "" : ", ") + std::string(rule.rule);
  }
  for (const auto& [why, names] : by_reason) {
    table->notes.push_back(fmt::format("{}{}: {}", kNotChecked, why, names));
  }
  if (!insights.no_savings.empty()) {
    table->notes.push_back(
        fmt::format("{}, so what could be saved is not known", insights.no_savings));
  } else if (!table->rows.empty()) {
    table->notes.push_back(
        "a saving counts only what the critical path bears; savings of several rows overlap");
  }
}

Table TableOfRules(const Run& run, std::span<const InsightRule> rules) {
  if (std::string jobs = DescribeJobs(run); !jobs.empty()) {
    Table table = TableOf("No insights", kColumns, std::vector<InsightLine>());
    table.notes.push_back(std::move(jobs));
    return table;
  }
  const bool is_all = rules.data() == AllInsightRules().data() && rules.size() > 1;
  const Insights of_one = is_all ? Insights() : FindInsights(run, rules);
  const Insights& insights = is_all ? InsightsOf(run) : of_one;
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const MeanStep mean = MeanOfRanks(waterfalls);
  std::vector<InsightLine> lines;
  std::set<std::string_view> idle;
  for (const Insight& insight : insights.list) {
    if (SavesNothing(insight)) {
      idle.insert(insight.rule);
      continue;
    }
    // A finding about several ranks has its share of their mean step, as its sentence has.
    const auto rule = std::ranges::find(rules, insight.rule, &InsightRule::name);
    const bool is_of_job = rule != rules.end() && rule->of_job != nullptr;
    lines.push_back({&insight, &run.traces[insight.trace],
                     is_of_job ? mean.ns : waterfalls[insight.trace].mean_step,
                     CommandFor(run, insight, rules)});
  }
  Table table = TableOf(TitleOf(lines.size()), kColumns, lines);
  AddNotes(insights, &table);
  if (!idle.empty()) {
    table.notes.push_back(fmt::format("left out, because the critical path bears none of it: {}",
                                      fmt::join(idle, ", ")));
  }
  return table;
}

}  // namespace

Table TabulateInsights(const Run& run, const ReportOptions&) {
  return TableOfRules(run, AllInsightRules());
}

Table TabulateInsightsNamed(const Run& run, std::string_view nsys) {
  for (const InsightRule& rule : AllInsightRules()) {
    if (rule.nsys == nsys) return TableOfRules(run, {&rule, 1});
  }
  return TableOfRules(run, {});
}

}  // namespace ranktap::collector

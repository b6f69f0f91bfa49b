#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "collector/report/claims/claim.h"
#include "collector/report/human_units.h"
#include "collector/report/jobs.h"
#include "collector/report/steps/run_diff.h"

namespace ranktap::collector {
namespace {

constexpr double kSameStep = 0.01;  // of the step, where nothing can be tested
constexpr double kExplained = 0.9;  // of the change: then enough parts are said
constexpr size_t kMostParts = 3, kMostNames = 2;
constexpr double kWorthARest = 0.01;  // of the change
constexpr double kWorthAName = 0.05;  // of the change
constexpr double kMostOfChange = 0.5;

std::string FormatLength(double ns) { return FormatNs(std::llround(std::abs(ns))); }
std::string Signed(double ns) { return (ns < 0 ? "-" : "+") + FormatLength(ns); }

// "module Net.fc", "data loading"
std::string Named(const DiffRow& row) {
  const auto& [kind, name] = row.key;
  return kind == SampleKind::kCause ? name : fmt::format("{} {}", NameOf(kind), name);
}

bool IsPart(const DiffRow& row) {
  return row.key.first == SampleKind::kCause || row.key.first == SampleKind::kHost;
}
bool IsNamed(const DiffRow& row) { return row.key.first >= SampleKind::kKernel; }

bool IsTheSame(const DiffRow& step) {
  return step.p_value ? *step.p_value >= kSignificant
                      : std::abs(step.change()) < kSameStep * step.before;
}

std::vector<const DiffRow*> LargestFirst(const std::vector<DiffRow>& rows,
                                         bool (*wanted)(const DiffRow&)) {
  std::vector<const DiffRow*> found;
  for (const DiffRow& row : rows) {
    if (wanted(row)) found.push_back(&row);
  }
  std::ranges::stable_sort(found, [](const auto* a, const auto* b) {
    return std::abs(a->change()) > std::abs(b->change());
  });
  return found;
}

// ": backward +1.900 ms, data loading +200.0 us, the rest +30.00 us"
std::string DescribeParts(const RunDiff& diff, double change) {
  std::string text;
  double said = 0;
  size_t count = 0;
  for (const DiffRow* const row : LargestFirst(diff.rows, &IsPart)) {
    if (count == kMostParts || std::abs(change - said) <= (1 - kExplained) * std::abs(change))
      break;
    if (row->change() == 0) break;
    text += fmt::format("{} {} {}", text.empty() ? ":" : ",", Named(*row), Signed(row->change()));
    said += row->change();
    ++count;
  }
  if (text.empty() || std::abs(change - said) < kWorthARest * std::abs(change)) return text;
  return text + fmt::format(", the rest {}", Signed(change - said));
}

std::string OfFewSteps(const DiffRow& row) {
  return IsOfWindows(row.key.first) && row.fewest_steps < kLeastSteps
             ? fmt::format(", of {} recorded", Counted(row.fewest_steps, "step"))
             : "";
}

// Changed in both runs, in the direction of the step, by half of its change at least; nullptr: none
// of this kind did.
const DiffRow* MostOf(SampleKind kind, const std::vector<const DiffRow*>& rows, double change) {
  for (const DiffRow* const row : rows) {
    if (std::abs(row->change()) < kMostOfChange * std::abs(change)) return nullptr;
    const bool is_one = row->key.first == kind && (row->change() > 0) == (change > 0);
    if (!is_one || row->is_new() || row->is_gone()) continue;
    if (row->p_value && *row->p_value >= kSignificant) continue;
    if (!row->key.second.starts_with("ProfilerStep#")) return row;
  }
  return nullptr;
}

// " In module Net.fc it is +1.700 ms, in operator aten::mm +1.600 ms, at train.py:97 (main) +2 ms."
std::string DescribeMost(const RunDiff& diff, double change) {
  const std::vector<const DiffRow*> rows = LargestFirst(diff.rows, &IsNamed);
  std::string text;
  // A range holds operators and kernels: it is named where these are not.
  for (const SampleKind kind : {SampleKind::kModule, SampleKind::kKernel, SampleKind::kOperator,
                                SampleKind::kLine, SampleKind::kRange}) {
    const DiffRow* const row = MostOf(kind, rows, change);
    if (row == nullptr || (kind == SampleKind::kRange && !text.empty())) continue;
    const bool is_first = text.empty();
    const std::string where = kind == SampleKind::kLine
                                  ? (is_first ? " At " : ", at ") + row->key.second
                                  : (is_first ? " In " : ", in ") + Named(*row);
    text += fmt::format("{}{} {}{}", where, is_first ? " it is" : "", Signed(row->change()),
                        OfFewSteps(*row));
  }
  return text.empty() ? text : text + ".";
}

// " Changed all the same: range load +11.48 ms.": significant, where the whole step's change is
// not.
std::string DescribeChanged(const RunDiff& diff, double least) {
  std::string text;
  size_t count = 0;
  const auto is_significant = [](const DiffRow& row) {
    return (IsNamed(row) || IsPart(row)) && row.p_value && *row.p_value < kSignificant &&
           !row.is_new() && !row.is_gone();
  };
  for (const DiffRow* const row : LargestFirst(diff.rows, is_significant)) {
    if (std::abs(row->change()) < least || count++ == kMostNames) break;
    text += fmt::format("{} {} {}", text.empty() ? "" : ",", Named(*row), Signed(row->change()));
  }
  return text.empty() ? text : fmt::format(" Changed all the same:{}.", text);
}

// " New: module Net.extra (1.850 ms)."
std::string DescribeNames(const RunDiff& diff, double least, std::string_view title,
                          bool (*wanted)(const DiffRow&)) {
  std::string text;
  size_t count = 0;
  for (const DiffRow* const row : LargestFirst(diff.rows, wanted)) {
    if (std::abs(row->change()) < least || count++ == kMostNames) break;
    text += fmt::format("{} {} ({}{})", text.empty() ? "" : ",", Named(*row),
                        FormatLength(row->change()), OfFewSteps(*row));
  }
  return text.empty() ? "" : fmt::format(" {}:{}.", title, text);
}

}  // namespace

std::string WhyUndecided(const Run& run) {
  if (std::string jobs = DescribeJobs(run); !jobs.empty()) return jobs;
  const Ruling& ruling = RulingOn(run, Claim::kLargestLoss);
  return ruling.is_undecided() ? ruling.why : "";
}

std::string DescribeDiff(const RunDiff& diff) {
  if (!diff.undecided.empty()) {
    return fmt::format("What changed is undecided: {}", diff.undecided);
  }
  if (diff.rows.empty()) return "Neither run has a trace";
  const DiffRow& step = diff.rows[0];
  const double change = step.change();
  const std::string subject = diff.has_steps ? "A step" : "All of the trace";
  const std::string percent =
      step.before == 0 ? "" : fmt::format(" ({:+.1f} %)", 100 * change / step.before);
  std::string text;
  if (IsTheSame(step)) {
    text = fmt::format("{} takes {} and took {} before{}: {}.", subject, FormatLength(step.after),
                       FormatLength(step.before), percent,
                       step.p_value
                           ? fmt::format("the {} differ as much",
                                         diff.of_runs ? "runs of one side" : "steps of one run")
                           : "that is the same within 1 %");
  } else {
    text = fmt::format("{} takes {}, {} {} than before{}{}.", subject, FormatLength(step.after),
                       FormatLength(change), change > 0 ? "more" : "less", percent,
                       DescribeParts(diff, change)) +
           DescribeMost(diff, change);
  }
  const double least = std::max(kWorthAName * std::abs(change), kSameStep * step.before);
  if (IsTheSame(step)) text += DescribeChanged(diff, kWorthAName * step.before);
  return text +
         DescribeNames(diff, least, "New",
                       [](const DiffRow& row) {
                         return IsNamed(row) && row.is_new() && !row.is_maybe_missed();
                       }) +
         DescribeNames(diff, least, "Gone", [](const DiffRow& row) {
           return IsNamed(row) && row.is_gone() && !row.is_maybe_missed();
         });
}

}  // namespace ranktap::collector

#include "collector/report/gate/workload.h"

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "collector/report/gate/welch.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/run_diff.h"

namespace ranktap::collector {
namespace {

using RunList = std::vector<RunFigures>;

constexpr size_t kMostSettingsSaid = 3;

// " The memory peak is 1.5 GiB (+20.0 %)."; empty: it is the same, or some run has none.
std::string DescribeFigure(std::string_view subject, const RunList& base, const RunList& runs,
                           std::optional<double> RunFigures::*figure,
                           const std::function<std::string(double)>& format) {
  constexpr double kWorthSaying = 0.01;
  std::vector<double> logs[2];
  double after = 0;
  for (const RunList* const list : {&base, &runs}) {
    for (const RunFigures& run : *list) {
      if (!(run.*figure) || *(run.*figure) <= 0) return "";
      logs[list == &runs].push_back(std::log(*(run.*figure)));
      if (list == &runs) after += *(run.*figure) / static_cast<double>(runs.size());
    }
  }
  double change = logs[1][0] - logs[0][0];
  if (const auto seen = CompareMeans(logs[0], logs[1])) {
    if (seen->PValue() >= kSignificant) return "";
    change = seen->difference;
  }
  if (std::abs(change) < kWorthSaying) return "";
  return fmt::format(" {} {} ({:+.1f} %).", subject, format(after), 100 * std::expm1(change));
}

}  // namespace

std::vector<OtherSetting> OtherSettings(const RunList& base, const RunList& runs) {
  std::set<std::string> names;
  for (const RunList* const list : {&base, &runs}) {
    for (const RunFigures& run : *list) {
      for (const auto& [name, value] : run.settings) names.insert(name);
    }
  }
  const auto values = [](const RunList& list, const std::string& name) {
    std::set<std::string> all;
    for (const RunFigures& run : list) {
      const auto found = run.settings.find(name);
      all.insert(found == run.settings.end() ? "none" : found->second);
    }
    return all;
  };
  std::vector<OtherSetting> others;
  for (const std::string& name : names) {
    const std::set<std::string> before = values(base, name), after = values(runs, name);
    if (before != after) others.push_back({name, *before.begin(), *after.begin()});
  }
  return others;
}

std::string DescribeWorkload(const RunList& base, const RunList& runs,
                             const std::vector<OtherSetting>& others) {
  // A command and a host differ where nothing is meant by it; the notes have all.
  const std::set<std::string> quiet = {"command", "host"};
  std::string text =
      DescribeFigure("A step computes", base, runs, &RunFigures::flops_per_step,
                     [](double flops) { return FormatFlops(std::llround(flops)) + " FLOPs"; });
  text += DescribeFigure(
      "The memory peak is", base, runs, &RunFigures::peak_bytes,
      [](double bytes) { return FormatBytes(static_cast<uint64_t>(std::llround(bytes))); });
  std::string settings;
  size_t said = 0;
  for (const OtherSetting& other : others) {
    if (quiet.contains(other.name) || said++ >= kMostSettingsSaid) continue;
    settings += fmt::format("{} {} is {} and was {}", settings.empty() ? "" : ",", other.name,
                            other.after, other.before);
  }
  return settings.empty() ? text : fmt::format("{} Configuration:{}.", text, settings);
}

}  // namespace ranktap::collector

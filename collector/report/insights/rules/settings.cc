// Settings that cost a host its time: anomaly mode, more threads than CPUs, 64-bit floats.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "collector/facts/framework/program_settings.h"
#include "collector/facts/host_activity.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShare = 0.05;  // of the step, in products of 64-bit floats

constexpr std::string_view kNotTold = "the settings of PyTorch are not recorded";

// Ranks of one machine share its CPUs.
int64_t ThreadsOnHost(const RankFacts& rank, const ProgramSettings& own) {
  int64_t threads = 0;
  for (const Trace& trace : rank.run().traces) {
    if (trace.info.host != rank.trace().info.host) continue;
    const std::optional<ProgramSettings> settings = SettingsOf(trace);
    threads += settings ? settings->threads : 0;
  }
  return std::max(threads, own.threads);
}

bool IsProduct(std::string_view name) {
  constexpr std::string_view kProducts[] = {"aten::mm",
                                            "aten::addmm",
                                            "aten::bmm",
                                            "aten::addmv",
                                            "aten::baddbmm",
                                            "aten::mv",
                                            "aten::convolution_backward"};
  return std::ranges::find(kProducts, name) != std::end(kProducts) ||
         name.starts_with("aten::mkldnn_convolution") || name.starts_with("aten::_slow_conv");
}

}  // namespace

Answer FindAnomalyMode(const RankFacts& rank) {
  const std::optional<ProgramSettings> settings = SettingsOf(rank.trace());
  if (!settings) return CannotTell(kNotTold);
  if (!settings->anomaly) return {};
  const int64_t passes = rank.PerStep(
      Length(Intersection(PhaseIntervals(rank.trace(), proto::kBackwardPhase), rank.counted())));
  Insight insight{
      .finding = fmt::format("Autograd's anomaly mode is on: it takes a Python stack for each "
                             "operator of the forward pass, and looks for NaN after each of the "
                             "backward pass, which takes {} {}.",
                             FormatNs(passes), rank.OfStep()),
      .count = 1,
      .lost_ns = 0};
  return {.insights = {std::move(insight)}};
}

Answer FindTooManyThreads(const RankFacts& rank) {
  const std::optional<ProgramSettings> settings = SettingsOf(rank.trace());
  if (!settings) return CannotTell(kNotTold);
  const int64_t threads = ThreadsOnHost(rank, *settings);
  // A host that only launches computes little.
  if (rank.has_device() || settings->cpus <= 0 || threads <= settings->cpus) return {};
  Insight insight{.finding = fmt::format("PyTorch computes with {} threads on {}.", threads,
                                         Counted(static_cast<size_t>(settings->cpus), "CPU")),
                  .count = threads,
                  .lost_ns = 0};
  return {.insights = {std::move(insight)}};
}

Answer FindDoubleProducts(const RankFacts& rank) {
  const Trace& trace = rank.trace();
  const Operators& ops = trace.operators;
  if (ops.size() == 0) return CannotTell("no operators are recorded");
  if (rank.has_device()) return {};
  int64_t ns = 0, count = 0;
  std::set<int64_t> steps;
  for (size_t i = 0; i < ops.size(); ++i) {
    const int64_t step = StepIndexAt(rank.waterfall().steps, ops.start[i]);
    if (step < 0 || !rank.IsCounted(ops.start[i])) continue;
    steps.insert(step);
    const bool is_double =
        trace.dictionary.String(ops.types.At(i)).find("\"double\"") != std::string_view::npos;
    if (!is_double || !IsProduct(trace.dictionary.String(ops.name[i]))) continue;
    ns += ops.end[i] - ops.start[i];
    ++count;
  }
  if (count == 0) return {};
  const int64_t lost = ns / static_cast<int64_t>(steps.size());
  if (!rank.IsWorth(lost, kLeastShare)) return {};
  Insight insight{
      .finding = fmt::format("Products of 64-bit floats take {} {} ({}).", FormatNs(lost),
                             rank.OfStep(), FormatShare(lost, rank.step_ns())),
      .count = count / static_cast<int64_t>(steps.size()),
      .lost_ns = lost};
  return {.insights = {std::move(insight)}};
}

}  // namespace ranktap::collector

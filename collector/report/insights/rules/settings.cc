// Settings that cost a host its time: anomaly mode, more threads than CPUs, 64-bit floats.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/framework/program_settings.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/samples/taken_time.h"
#include "collector/facts/steps.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfSettings = 0.05;  // of the step, in products of 64-bit floats
constexpr double kLeastQueued = 0.02;           // of the step, ready to run without a CPU

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

// A rank that is bound to some of them does not make the others' fewer.
int64_t CpusOfAll(const RankFacts& rank, const ProgramSettings& own) {
  return std::max(own.cpus, static_cast<int64_t>(CpusAround(rank.run(), rank.index()).cpus));
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

bool AreMoreThreadsThanCpus(const RankFacts& rank) {
  const std::optional<ProgramSettings> settings = SettingsOf(rank.trace());
  // A host that only launches computes little.
  return settings && !rank.has_device() && settings->cpus > 0 &&
         ThreadsOnHost(rank, *settings) > CpusOfAll(rank, *settings);
}

Answer FindTooManyThreads(const RankFacts& rank) {
  const std::optional<ProgramSettings> settings = SettingsOf(rank.trace());
  const TakenTime& taken = TakenOfRanks(rank.run())[rank.index()];
  if (!settings && taken.sampled_ns == 0) return CannotTell(kNotTold);
  const int64_t threads = settings ? ThreadsOnHost(rank, *settings) : 0;
  const bool are_set = AreMoreThreadsThanCpus(rank);
  const SharedCpus shared = CpusAround(rank.run(), rank.index());
  const int64_t lost = rank.PerStep(taken.queued.ns - taken.throttled_ns);
  const bool are_seen = (are_set || shared.AreUsedUp()) && rank.IsWorth(lost, kLeastQueued);
  if (!are_set && !are_seen) return {};
  Insight insight{.where = are_seen ? taken.queued.line : "", .count = threads, .lost_ns = 0};
  if (are_set) {
    insight.finding = fmt::format("PyTorch computes with {} threads on {}", threads,
                                  Counted(static_cast<size_t>(CpusOfAll(rank, *settings)), "CPU"));
  } else {
    insight.finding = fmt::format("The threads of {} use up {}", Counted(shared.ranks, "rank"),
                                  Counted(shared.cpus, "CPU"));
  }
  if (are_seen) {
    insight.finding +=
        fmt::format(": the main thread is ready to run and has no CPU for {} {} ({})",
                    FormatNs(lost), rank.OfStep(), FormatShare(lost, rank.step_ns()));
    insight.lost_ns = lost;
    if (rank.has_device()) {
      insight.saving = Saving{.moments = rank.counted(), .causes = kIdleCauses, .most_ns = lost};
    }
  }
  insight.finding += ".";
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
  if (!rank.IsWorth(lost, kLeastShareOfSettings)) return {};
  Insight insight{
      .finding = fmt::format("Products of 64-bit floats take {} {} ({}).", FormatNs(lost),
                             rank.OfStep(), FormatShare(lost, rank.step_ns())),
      .count = count / static_cast<int64_t>(steps.size()),
      .lost_ns = lost};
  return {.insights = {std::move(insight)}};
}

}  // namespace ranktap::collector

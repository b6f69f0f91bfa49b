// Kernels of cuDNN that turn NCHW into NHWC and back around convolutions.
#include <fmt/core.h>

#include "collector/facts/kernel_kinds.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/chosen_work.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfLayoutTransposes = 0.01;  // of the step

}  // namespace

Answer FindLayoutTransposes(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (rank.trace().kernels.size() == 0) return CannotTell("no kernels are recorded");
  const KernelKinds& kinds = KernelKindsOf(rank.trace());
  if (!kinds.has_layout_changes()) return {};
  ChosenWork work(rank);
  for (const DeviceSpan& span : rank.spans()) {
    const bool is_kernel = span.table == DeviceSpan::Table::kKernel;
    if (is_kernel && kinds.Of(span.name).changes_layout) work.Add(span);
  }
  if (!work.IsWorth(kLeastShareOfLayoutTransposes)) return {};
  return {
      .insights = {work.AsInsight(
          fmt::format("{} kernels, {}, transpose between NCHW and NHWC around convolutions, {}.",
                      FormatCount(work.count()), rank.TimesAStep(work.count()), work.Taking()),
          1)}};
}

}  // namespace ranktap::collector

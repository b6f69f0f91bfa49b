// Reshapes and copies between the optimizer's step and the next forward pass.
#include <fmt/core.h>

#include "collector/analysis/kernel_kinds.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/chosen_work.h"
#include "collector/report/insights/pass_times.h"
#include "collector/report/insights/rules/all_rules.h"
#include "collector/report/steps/device_sweep.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShare = 0.02;                      // of the step
constexpr uint8_t kDeviceToDevice = 8, kPeerToPeer = 10;  // CUpti_ActivityMemcpyKind

bool OnlyMoves(const RankFacts& rank, const KernelKinds& kinds, const DeviceSpan& span) {
  if (span.table == DeviceSpan::Table::kKernel) return kinds.Of(span.name).only_moves;
  if (span.table != DeviceSpan::Table::kCopy) return false;
  const uint8_t kind = rank.trace().copies.copy_kind[span.row];
  return kind == kDeviceToDevice || kind == kPeerToPeer;
}

}  // namespace

Answer FindCopiesAfterStep(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell("nothing ran on a device");
  if (!rank.has_launches()) return CannotTell("no launches are recorded");
  if (OptimizerSteps(rank.trace()).empty()) return CannotTell("no optimizer's step is recorded");
  const std::vector<Interval> after = AfterOptimizerSteps(rank.trace());
  if (after.empty()) return CannotTell("no forward or backward pass is recorded");
  const KernelKinds kinds(rank.trace());
  ChosenWork work(rank);
  for (const DeviceSpan& span : rank.spans()) {
    if (span.launch == kNone || !OnlyMoves(rank, kinds, span)) continue;
    const int64_t launched = rank.trace().api_calls.start[span.launch];
    if (!Within(after, launched, launched + 1).empty()) work.Add(span);
  }
  if (!work.IsWorth(kLeastShare)) return {};
  return {.insights = {work.AsInsight(
              fmt::format("{} copies, casts and transposes run after the optimizer's step and "
                          "before the next pass of the model, {}.",
                          FormatCount(work.count()), work.Taking()),
              1)}};
}

}  // namespace ranktap::collector

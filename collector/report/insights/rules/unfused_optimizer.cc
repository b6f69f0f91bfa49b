// An optimizer that launches a kernel for each tensor and operation.
#include <fmt/core.h>

#include "collector/facts/kernel_kinds.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/chosen_work.h"
#include "collector/report/insights/pass_times.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastKernels = 50;  // a step; a fused one needs 1 for 30 to 110 tensors
constexpr double kLeastShareOfUnfusedOptimizer = 0.02;  // of the step, with the gaps between them

}  // namespace

Answer FindUnfusedOptimizer(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (!rank.has_launches()) return CannotTell("no launches are recorded");
  const std::vector<Interval> steps = OptimizerSteps(rank.trace());
  if (steps.empty()) return CannotTell("no optimizer's step is recorded");
  const KernelKinds& kinds = KernelKindsOf(rank.trace());
  ChosenWork work(rank);
  std::vector<bool> chosen(rank.spans().size());
  for (size_t i = 0; i < chosen.size(); ++i) {
    const DeviceSpan& span = rank.spans()[i];
    if (span.table != DeviceSpan::Table::kKernel || span.launch == kNone) continue;
    if (kinds.Of(span.name).is_of_tensor_list || span.kind != WorkKind::kCompute) continue;
    const int64_t launched = rank.trace().api_calls.start[span.launch];
    if (Within(steps, launched, launched + 1).empty()) continue;
    chosen[i] = true;
    work.Add(span);
  }
  std::vector<Interval> gaps;
  int64_t gap_ns = 0;
  rank.ForEachLost(BitOf(Cause::kHost) | BitOf(Cause::kLatency), [&](const LostPiece& piece) {
    if (piece.span == kNone || !chosen[piece.span]) return;
    gap_ns += piece.length();
    gaps.emplace_back(piece.start, piece.end);
  });
  gap_ns = rank.PerStep(gap_ns);
  const bool is_many = rank.TimesPerStep(work.count()) >= kLeastKernels;
  if (!is_many || !rank.IsWorth(work.per_step() + gap_ns, kLeastShareOfUnfusedOptimizer)) return {};
  return {.insights = {
              {.device = work.Device(),
               .finding = fmt::format(
                   "The optimizer launches kernels for one tensor at a time {}, {}, and {} more "
                   "pass between them.",
                   rank.TimesAStep(work.count()), work.Taking(), FormatNs(gap_ns)),
               .where = work.Place(),
               .count = work.count(),
               .lost_ns = gap_ns,
               .saving = Saving{.moments = std::move(gaps),
                                .causes = BitOf(Cause::kHost) | BitOf(Cause::kLatency)}}}};
}

}  // namespace ranktap::collector

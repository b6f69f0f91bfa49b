// Reshapes and copies between the optimizer's step and the next forward pass.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/framework/evaluation_forwards.h"
#include "collector/facts/framework/timed_steps.h"
#include "collector/facts/kernel_kinds.h"
#include "collector/facts/steps.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/chosen_work.h"
#include "collector/report/insights/pass_times.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfCopiesAfterStep = 0.02;     // of the step
constexpr uint8_t kDeviceToDevice = 8, kPeerToPeer = 10;  // CUpti_ActivityMemcpyKind

bool OnlyMoves(const RankFacts& rank, const KernelKinds& kinds, const DeviceSpan& span) {
  if (span.table == DeviceSpan::Table::kKernel) return kinds.Of(span.name).only_moves;
  if (span.table != DeviceSpan::Table::kCopy) return false;
  const uint8_t kind = rank.trace().copies.copy_kind[span.row];
  return kind == kDeviceToDevice || kind == kPeerToPeer;
}

constexpr std::string_view kMoves[] = {
    "aten::_to_copy", "aten::cat",       "aten::clone",     "aten::contiguous",
    "aten::copy_",    "aten::expand",    "aten::flatten",   "aten::permute",
    "aten::reshape",  "aten::squeeze",   "aten::stack",     "aten::t",
    "aten::to",       "aten::transpose", "aten::unsqueeze", "aten::view",
};

// No operator is around it, but an annotation may be.
bool IsOutermost(const Operators& ops, uint32_t op) {
  const uint32_t parent = ops.parent[op];
  return parent == kNone ||
         static_cast<OperatorKind>(ops.kind[parent]) == OperatorKind::kAnnotation;
}

// The steps whose operators are recorded: what these cost is divided by them alone.
struct OperatorSteps {
  std::vector<Interval> steps;
  bool of_warm_up = false;
};

// The counted ones; those of the warm-up where no other is recorded, as in a run of a few steps.
OperatorSteps StepsWithOperators(const RankFacts& rank) {
  const std::vector<bool> recorded =
      RecordedSteps(rank.trace(), SplitByEvaluation(rank.trace()).training);
  const std::vector<Step>& steps = DetectSteps(rank.trace()).list;
  if (steps.empty()) return {.steps = rank.counted()};
  OperatorSteps counted, warm_up{.of_warm_up = true};
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!recorded[i]) continue;
    (steps[i].warm_up ? warm_up : counted).steps.emplace_back(steps[i].start, steps[i].end);
  }
  return counted.steps.empty() ? warm_up : counted;
}

struct HostMoves {
  int64_t count = 0, ns = 0;
  std::map<std::string, int64_t> places;
};

HostMoves MovesIn(const RankFacts& rank, const std::vector<Interval>& moments) {
  const Operators& ops = rank.trace().operators;
  HostMoves moves;
  for (uint32_t op = 0; op < ops.size(); ++op) {
    if (!IsOutermost(ops, op)) continue;
    const std::string_view name = rank.trace().dictionary.String(ops.name[op]);
    if (!std::ranges::binary_search(kMoves, name)) continue;
    if (Within(moments, ops.start[op], ops.start[op] + 1).empty()) continue;
    const int64_t ns = ops.end[op] - ops.start[op];
    ++moves.count;
    moves.ns += ns;
    moves.places[rank.PlaceAt(ops.writer[op], ops.start[op])] += ns;
  }
  return moves;
}

// "of each 10.00 ms step (20.0 %)", and of how many steps that is known.
std::string OfRecorded(const RankFacts& rank, int64_t per_step, int64_t step_ns,
                       const OperatorSteps& recorded) {
  const std::string share = FormatShare(per_step, step_ns);
  if (!rank.has_steps()) return fmt::format("of {} ({})", FormatNs(step_ns), share);
  std::string text = fmt::format("of each {} step ({})", FormatNs(step_ns), share);
  if (recorded.of_warm_up || recorded.steps.size() < rank.waterfall().counted) {
    text += fmt::format(" in the {} whose operators are recorded{}",
                        Counted(recorded.steps.size(), "step"),
                        recorded.of_warm_up ? ", of the warm-up" : "");
  }
  return text;
}

// Without a device the operators themselves move the data, or at least take the host's time.
Answer OnTheHost(const RankFacts& rank, const std::vector<Interval>& after) {
  const OperatorSteps with_operators = StepsWithOperators(rank);
  const std::vector<Interval>& steps = with_operators.steps;
  if (steps.empty()) return CannotTell("no step has its operators recorded");
  const HostMoves moves = MovesIn(rank, Intersection(after, steps));
  const auto recorded = static_cast<int64_t>(steps.size());
  const int64_t per_step = moves.ns / recorded, step_ns = Length(steps) / recorded;
  const bool is_worth =
      static_cast<double>(per_step) >= kLeastShareOfCopiesAfterStep * static_cast<double>(step_ns);
  if (moves.count == 0 || !is_worth) return {};
  const auto longest =
      std::ranges::max_element(moves.places, {}, [](const auto& place) { return place.second; });
  return {.insights = {{.finding = fmt::format(
                            "{} reshapes, casts and copies{} run on the host after the optimizer's "
                            "step and before the next pass of the model, taking {} {}.",
                            FormatCount((moves.count + recorded / 2) / recorded),
                            rank.has_steps() ? " a step" : "", FormatNs(per_step),
                            OfRecorded(rank, per_step, step_ns, with_operators)),
                        .where = longest->first,
                        .count = moves.count,
                        .lost_ns = per_step}}};
}

}  // namespace

Answer FindCopiesAfterStep(const RankFacts& rank) {
  const bool on_host = rank.waterfall().on_host && rank.waterfall().counted > 0;
  if (!rank.has_device() && !on_host) return CannotTell(rank.WhyNoDevice());
  if (!on_host && !rank.has_launches()) return CannotTell("no launches are recorded");
  if (OptimizerSteps(rank.trace()).empty()) return CannotTell("no optimizer's step is recorded");
  const std::vector<Interval> after = AfterOptimizerSteps(rank.trace());
  if (after.empty()) return CannotTell("no forward or backward pass is recorded");
  if (on_host) {
    if (rank.trace().operators.size() == 0) return CannotTell("no operators are recorded");
    return OnTheHost(rank, after);
  }
  const KernelKinds& kinds = KernelKindsOf(rank.trace());
  ChosenWork work(rank);
  for (const DeviceSpan& span : rank.spans()) {
    if (span.launch == kNone || !OnlyMoves(rank, kinds, span)) continue;
    const int64_t launched = rank.trace().api_calls.start[span.launch];
    if (!Within(after, launched, launched + 1).empty()) work.Add(span);
  }
  if (!work.IsWorth(kLeastShareOfCopiesAfterStep)) return {};
  return {.insights = {work.AsInsight(
              fmt::format("{} copies, casts and transposes run after the optimizer's step and "
                          "before the next pass of the model, {}.",
                          FormatCount(work.count()), work.Taking()),
              1)}};
}

}  // namespace ranktap::collector

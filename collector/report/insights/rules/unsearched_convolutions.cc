// Convolutions of fixed shapes for which cuDNN guesses an algorithm, and does not try them all.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "collector/facts/flops/op_inputs.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/chosen_work.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

constexpr double kLeastShareOfUnsearchedConvolutions =
    0.05;  // of the step: a search takes seconds at its start
// A search pays where a shape comes again; each new one is searched anew.
constexpr size_t kCallsOfAShape = 2;

// Which input `benchmark` is: native_functions.yaml of PyTorch 2.1 and of 2.15.
std::optional<size_t> InputOfBenchmark(std::string_view name) {
  if (name == "aten::_convolution") return 9;
  if (name == "aten::cudnn_convolution") return 6;
  if (name == "aten::cudnn_convolution_transpose") return 7;
  return std::nullopt;
}

struct Convolutions {
  ChosenWork unsearched;
  std::set<std::pair<uint32_t, uint32_t>> shapes;  // name and shapes of the operators
  std::set<uint32_t> calls;                        // rows of operators
  bool has_flag = false;

  explicit Convolutions(const RankFacts& rank) : unsearched(rank) {
    for (const DeviceSpan& span : rank.spans()) AddSpan(rank.trace(), span);
  }

 private:
  // By the nearest operator around the launch that says whether cuDNN searches.
  void AddSpan(const Trace& trace, const DeviceSpan& span) {
    if (span.table != DeviceSpan::Table::kKernel) return;
    const Operators& ops = trace.operators;
    for (uint32_t op = LaunchingOperator(trace, span); op != kNone; op = ops.parent[op]) {
      const auto input = InputOfBenchmark(trace.dictionary.String(ops.name[op]));
      if (!input) continue;
      const OpInputs inputs("", trace.dictionary.String(ops.values.At(op)));
      if (inputs.values.size() <= *input || inputs.values[*input].empty()) continue;
      has_flag = true;
      if (inputs.Flag(*input, 0, true)) return;
      unsearched.Add(span);
      calls.insert(op);
      shapes.emplace(ops.name[op], ops.shapes.At(op));
      return;
    }
  }
};

}  // namespace

Answer FindUnsearchedConvolutions(const RankFacts& rank) {
  if (!rank.has_device()) return CannotTell(rank.WhyNoDevice());
  if (rank.trace().kernels.size() == 0) return CannotTell("no kernels are recorded");
  constexpr std::string_view kNoInputs = "no convolution's inputs are recorded";
  if (rank.trace().operators.size() == 0) return CannotTell(kNoInputs);
  const Convolutions found(rank);
  if (!found.has_flag) return CannotTell(kNoInputs);
  const bool come_again = found.calls.size() >= kCallsOfAShape * found.shapes.size();
  if (!found.unsearched.IsWorth(kLeastShareOfUnsearchedConvolutions) || !come_again) return {};
  Insight insight = found.unsearched.AsInsight(
      fmt::format("cuDNN guesses the algorithm of {} convolutions of {}, {}.",
                  FormatCount(static_cast<int64_t>(found.calls.size())),
                  Counted(found.shapes.size(), "shape"), found.unsearched.Taking()),
      1);
  insight.saving.reset();  // what a search finds only a search tells
  return {.insights = {std::move(insight)}};
}

}  // namespace ranktap::collector

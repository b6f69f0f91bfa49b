#include "collector/report/steps/model_calls.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/steps.h"
#include "collector/report/cells.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

constexpr double kApart = 4;         // times longer than the longest of the others
constexpr size_t kLeastOfAKind = 2;  // calls: one alone is an accident
constexpr size_t kLeastPart = 100;   // of that many calls one is long

// The least length of the calls that take longer, if there are two kinds: further apart than the
// longer ones among themselves. Else 0.
int64_t WhereLongOnesBegin(std::vector<int64_t> lengths) {
  std::ranges::sort(lengths);
  double most = kApart;
  size_t begin = 0;
  for (size_t i = kLeastOfAKind; i + kLeastOfAKind <= lengths.size(); ++i) {
    const double ratio =
        static_cast<double>(lengths[i]) / static_cast<double>(std::max<int64_t>(lengths[i - 1], 1));
    if (ratio < most) continue;
    most = ratio;
    begin = i;
  }
  if (begin == 0 || (lengths.size() - begin) * kLeastPart < lengths.size()) return 0;
  const double spread = static_cast<double>(lengths.back()) /
                        static_cast<double>(std::max<int64_t>(lengths[begin], 1));
  return spread <= most ? lengths[begin] : 0;
}

// The first tensor that an operator in it takes.
Dims InputIn(const Trace& trace, const Interval& forward) {
  const Operators& ops = trace.operators;
  auto at = std::lower_bound(ops.start.begin(), ops.start.end(), forward.first);
  for (; at != ops.start.end() && *at < forward.second; ++at) {
    const auto row = static_cast<size_t>(at - ops.start.begin());
    const OpInputs inputs(trace.dictionary.String(ops.shapes.At(row)), "");
    for (const Dims& dims : inputs.shapes) {
      if (!dims.empty()) return dims;
    }
  }
  return {};
}

std::string OnInput(const Dims& dims, const Dims& of_others) {
  return dims.empty() || dims == of_others ? "" : fmt::format(" on [{}]", fmt::join(dims, ", "));
}

}  // namespace

ModelCalls CallsOf(const Trace& trace, const StepList& steps) {
  const std::vector<Interval> forwards = ForwardPasses(trace);
  ModelCalls found{.made = steps.list.size()};
  int64_t idle = 0, pauses = 0;
  std::vector<int64_t> lengths;
  std::vector<std::vector<Interval>> of_step;
  for (const Step& step : steps.list) {
    if (step.warm_up) continue;
    of_step.push_back(Within(forwards, step.start, step.end));
    const int64_t computes = Length(of_step.back());
    lengths.push_back(computes);
    found.calls.Add(computes);
    found.all_ns += step.length();
    idle += step.length() - computes;
    pauses += step.length() > computes;
  }
  found.pause_ns = idle / std::max<int64_t>(pauses, 1);
  const int64_t long_from = WhereLongOnesBegin(lengths);
  for (size_t i = 0; i < lengths.size() && long_from > 0; ++i) {
    const bool is_long = lengths[i] >= long_from;
    (is_long ? found.long_calls : found.short_calls).Add(lengths[i]);
    Dims& input = is_long ? found.long_input : found.short_input;
    if (input.empty() && !of_step[i].empty()) input = InputIn(trace, of_step[i].front());
  }
  return found;
}

std::string DescribeLengths(const ModelCalls& of) {
  if (of.long_calls.count == 0) {
    return fmt::format("a call takes {} (p50), {} (p99)", FormatNs(of.calls.median_ns()),
                       FormatNs(of.calls.p99_ns()));
  }
  return fmt::format("{} calls{} take {} (p50), the others{} {} (p50), {} (p99)",
                     of.long_calls.count, OnInput(of.long_input, of.short_input),
                     FormatNs(of.long_calls.median_ns()), OnInput(of.short_input, of.long_input),
                     FormatNs(of.short_calls.median_ns()), FormatNs(of.short_calls.p99_ns()));
}

std::string DescribeCalls(const Run& run) {
  ModelCalls most;
  for (const Trace& trace : run.traces) {
    const StepList& steps = DetectSteps(trace);
    if (steps.list.empty()) continue;
    if (!steps.is_call) return "";
    ModelCalls calls = CallsOf(trace, steps);
    if (calls.calls.count > most.calls.count) most = std::move(calls);
  }
  if (most.calls.count == 0) return "";
  const int64_t idle = most.all_ns - most.calls.total_ns;
  return fmt::format("The model is called {}: {}, and {} pass between two, {} of the time.",
                     Counted(most.made, "time"), DescribeLengths(most), FormatNs(most.pause_ns),
                     FormatShare(idle, most.all_ns));
}

}  // namespace ranktap::collector

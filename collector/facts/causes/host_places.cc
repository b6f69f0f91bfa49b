#include "collector/facts/causes/host_places.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>

#include "collector/facts/causes/device_sweep.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/steps.h"

namespace ranktap::collector {
namespace {

// By the pass before and the one after.
constexpr std::array<std::array<std::string_view, 4>, 4> kBetween = {{
    {"", "before the forward pass", "before the backward pass", "before the optimizer"},
    {"after the forward pass", "between two forward passes",
     "between the forward and the backward pass", "between the forward pass and the optimizer"},
    {"after the backward pass", "between the backward and the next forward pass",
     "between two backward passes", "between the backward pass and the optimizer"},
    {"after the optimizer", "after the optimizer and before the next forward pass",
     "between the optimizer and the next backward pass", "between two optimizers"},
}};

using Times = std::map<std::string_view, int64_t>;

const Times::value_type* Largest(const Times& times) {
  const auto most = std::ranges::max_element(
      times, [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == times.end() ? nullptr : &*most;
}

// What the moments of one place are spent in.
struct Tally {
  int64_t ns = 0, recorded_ns = 0;  // recorded: of steps whose operators are
  Times ranges, operators;
  LineTally lines;

  std::string Inside() const {
    const auto* const range = Largest(ranges);
    if (range != nullptr && range->second * 2 > ns) return fmt::format("range {}", range->first);
    const auto* const op = Largest(operators);
    const bool has_most = op != nullptr && op->second * 2 > recorded_ns;
    return has_most ? std::string(op->first) : "";
  }
};

// The moments of one rank's host that nothing explains, each with its place.
class Unexplained {
 public:
  Unexplained(const Trace& trace, const RankWaterfall& waterfall,
              const HostCommunication& communication)
      : trace_(trace), waterfall_(waterfall) {
    std::vector<Interval> explained, counted;
    for (const Explained::Piece& piece : ExplainHost(trace, communication).Take()) {
      explained.push_back(piece.interval);
    }
    for (const Step& step : waterfall.steps.list) {
      if (!step.warm_up) counted.emplace_back(step.start, step.end);
    }
    const PassGaps gaps(trace);
    // Step by step: what lies on both sides of a step's end is two moments.
    const std::vector<Interval> taken = Merged(std::move(explained));
    for (const Interval& step : counted) {
      for (const Interval& moment : Difference({step}, taken)) {
        moments_.push_back(moment);
        tallies_.push_back(&by_place_[gaps.At(moment.first)]);
        tallies_.back()->ns += moment.second - moment.first;
        tallies_.back()->lines.Add(SamplesOf(trace), moment.first, moment.second);
      }
    }
  }

  std::vector<HostPlace> Places() {
    AddRanges();
    AddOperators();
    std::vector<HostPlace> places;
    const auto counted = static_cast<int64_t>(waterfall_.counted);
    for (const auto& [where, tally] : by_place_) {
      places.push_back(
          {std::string(where), tally.Inside(), tally.ns / counted, tally.lines.Most()});
    }
    std::ranges::stable_sort(places, std::greater(), &HostPlace::ns);
    return places;
  }

 private:
  // visit(tally, ns) for each moment that [start, end) has a part of.
  template <typename Visit>
  void ForEachIn(int64_t start, int64_t end, Visit&& visit) {
    auto at = std::ranges::upper_bound(moments_, start, {}, &Interval::second);
    for (; at != moments_.end() && at->first < end; ++at) {
      visit(*tallies_[static_cast<size_t>(at - moments_.begin())],
            std::min(end, at->second) - std::max(start, at->first));
    }
  }
  void AddRange(uint32_t name, int64_t start, int64_t end) {
    // These say no more than the step.
    const std::string_view text = trace_.dictionary.String(name);
    if (end - start >= waterfall_.mean_step || text.starts_with("ProfilerStep#")) return;
    ForEachIn(start, end, [&](Tally& tally, int64_t ns) { tally.ranges[text] += ns; });
  }
  void AddRanges() {
    const Ranges& ranges = trace_.ranges;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (trace_.dictionary.Domain(ranges.domain[i]).starts_with("ranktap.")) continue;
      AddRange(ranges.name[i], ranges.start[i], ranges.end[i]);
    }
  }
  void AddOperators() {
    const Operators& ops = trace_.operators;
    const auto is_operator = [&ops](uint32_t row) {
      return ops.kind[row] == static_cast<uint8_t>(OperatorKind::kOperator);
    };
    std::vector<bool> recorded(waterfall_.steps.list.size());
    for (uint32_t i = 0; i < ops.size(); ++i) {
      if (!is_operator(i)) {
        AddRange(ops.name[i], ops.start[i], ops.end[i]);
        continue;
      }
      const int64_t step = StepIndexAt(waterfall_.steps, ops.start[i]);
      if (step >= 0) recorded[static_cast<size_t>(step)] = true;
      const uint32_t parent = ops.parent[i];
      if (parent != kNone && is_operator(parent)) continue;
      ForEachIn(ops.start[i], ops.end[i], [&](Tally& tally, int64_t ns) {
        tally.operators[trace_.dictionary.String(ops.name[i])] += ns;
      });
    }
    for (size_t i = 0; i < recorded.size(); ++i) {
      const Step& step = waterfall_.steps.list[i];
      if (!recorded[i]) continue;
      ForEachIn(step.start, step.end, [](Tally& tally, int64_t ns) { tally.recorded_ns += ns; });
    }
  }

  const Trace& trace_;
  const RankWaterfall& waterfall_;
  std::map<std::string_view, Tally> by_place_;
  std::vector<Interval> moments_;  // by start
  std::vector<Tally*> tallies_;    // of each moment
};

}  // namespace

PassGaps::PassGaps(const Trace& trace) {
  Explained passes;
  AddPasses(trace, &passes);
  passes_ = passes.Take();
  for (const Explained::Piece& pass : passes_) has_forward_ |= pass.cause == Cause::kForward;
  std::array<std::array<size_t, 4>, 4> count{};  // by the one before, and the one after
  for (size_t i = 0; i + 1 < passes_.size(); ++i) {
    ++count[PassOf(passes_[i].cause)][PassOf(passes_[i + 1].cause)];
  }
  // A backward pass may be in pieces, by operator: another pass says more.
  for (size_t pass = 0; pass < count.size(); ++pass) {
    for (size_t other = 0; other < count.size(); ++other) {
      count[pass][other] =
          pass == other ? std::min<size_t>(count[pass][other], 1) : 2 * count[pass][other];
    }
  }
  for (size_t pass = 0; pass < count.size(); ++pass) {
    for (size_t other = 0; other < count.size(); ++other) {
      if (count[pass][other] > count[pass][usual_after_[pass]]) {
        usual_after_[pass] = static_cast<Pass>(other);
      }
      if (count[other][pass] > count[usual_before_[pass]][pass]) {
        usual_before_[pass] = static_cast<Pass>(other);
      }
    }
  }
}

PassGaps::Pass PassGaps::PassOf(Cause cause) {
  if (cause == Cause::kForward) return kForward;
  if (cause == Cause::kBackward) return kBackward;
  return cause == Cause::kOptimizer ? kOptimizer : kNoPass;
}

std::string_view PassGaps::At(int64_t time) const {
  const auto next = std::ranges::lower_bound(
      passes_, time, {}, [](const Explained::Piece& piece) { return piece.interval.first; });
  const bool is_first = next == passes_.begin(), is_last = next == passes_.end();
  Pass before = is_first ? kNoPass : PassOf(std::prev(next)->cause);
  Pass after = is_last ? kNoPass : PassOf(next->cause);
  if (is_first) before = usual_before_[after];
  if (is_last) after = usual_after_[before];
  if (!has_forward_ && after == kBackward && before != kBackward) {
    return "in the forward pass or before it";
  }
  return kBetween[before][after];
}

std::vector<HostPlace> PlacesOfHost(const Run& run, uint32_t trace,
                                    const RankWaterfall& waterfall) {
  return Unexplained(run.traces[trace], waterfall, CommunicationOfHosts(run)[trace]).Places();
}

std::vector<std::vector<HostPlace>> PlacesOfHosts(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  std::vector<std::vector<HostPlace>> places(run.traces.size());
  for (size_t t = 0; t < places.size(); ++t) {
    if (waterfalls[t].counted == 0 || !waterfalls[t].on_host) continue;
    places[t] = PlacesOfHost(run, t, waterfalls[t]);
  }
  return places;
}

}  // namespace ranktap::collector

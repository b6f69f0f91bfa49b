#include "collector/facts/framework/evaluation_forwards.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/steps.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// Forwards of one root by start: rows of spans.
using Roots = std::map<uint32_t, std::vector<uint32_t>>;  // by name

std::vector<int64_t> BackwardStarts(const Trace& trace) {
  std::vector<int64_t> starts;
  for (const uint32_t row : RangesIn(trace, kPhaseDomain)) {
    if (trace.dictionary.String(trace.ranges.name[row]) == proto::kBackwardPhase) {
      starts.push_back(trace.ranges.start[row]);
    }
  }
  return starts;
}

// Between optimizer steps, or between nothing and nothing: the whole trace.
std::vector<int64_t> StepStarts(const Trace& trace) {
  std::vector<int64_t> starts;
  for (const uint32_t row : RangesIn(trace, kStepDomain)) {
    starts.push_back(trace.ranges.start[row]);
  }
  return starts;
}

class OfRoot {
 public:
  OfRoot(const std::vector<ModuleSpan>& spans, const std::vector<uint32_t>& forwards,
         const std::vector<int64_t>& backwards, const std::vector<int64_t>& steps)
      : spans_(spans), forwards_(forwards), backwards_(backwards), steps_(steps) {}

  // The last forwards before each backward train, as many as the step without evaluation has.
  // From the end, because a pipeline has many forwards open before its first backward.
  void Mark(std::vector<bool>* evaluations) const {
    const int64_t for_each = ForwardsForEachBackward();
    int64_t wanted = 0;
    size_t next = backwards_.size();
    for (size_t i = forwards_.size(); i-- > 0;) {
      const ModuleSpan& forward = spans_[forwards_[i]];
      for (; next > 0 && backwards_[next - 1] >= forward.end; --next) wanted += for_each;
      // A backward pass inside, by hand or of a compiler that traces it, wants no other forward.
      const bool has_backward = next > 0 && backwards_[next - 1] >= forward.start;
      while (next > 0 && backwards_[next - 1] >= forward.start) --next;
      (*evaluations)[forwards_[i]] = wanted == 0 && !has_backward;
      wanted -= wanted > 0 ? 1 : 0;
    }
  }

 private:
  size_t Before(const std::vector<int64_t>& starts, int64_t time) const {
    return static_cast<size_t>(std::lower_bound(starts.begin(), starts.end(), time) -
                               starts.begin());
  }
  // The least of all steps: Siamese networks have two, each evaluation adds to its step's.
  int64_t ForwardsForEachBackward() const {
    std::map<size_t, std::pair<int64_t, int64_t>> by_step;  // forwards, backwards
    for (const uint32_t row : forwards_) ++by_step[Before(steps_, spans_[row].start + 1)].first;
    for (const int64_t start : backwards_) ++by_step[Before(steps_, start + 1)].second;
    int64_t least = INT64_MAX;
    for (const auto& [step, counts] : by_step) {
      const auto [forwards, backwards] = counts;
      if (forwards == 0 || backwards == 0) continue;
      least = std::min(least, (forwards + backwards - 1) / backwards);
    }
    return least == INT64_MAX ? 1 : least;
  }

  const std::vector<ModuleSpan>& spans_;
  const std::vector<uint32_t>& forwards_;
  const std::vector<int64_t>&backwards_, &steps_;
};

}  // namespace

std::vector<bool> EvaluationForwards(const Trace& trace, const std::vector<ModuleSpan>& spans) {
  std::vector<bool> evaluations(spans.size());
  const std::vector<int64_t> backwards = BackwardStarts(trace);
  if (backwards.empty()) return evaluations;
  const std::vector<int64_t> steps = StepStarts(trace);
  Roots roots;
  for (uint32_t row = 0; row < spans.size(); ++row) {
    if (spans[row].depth == 0) roots[spans[row].name].push_back(row);
  }
  for (const auto& [name, forwards] : roots) {
    OfRoot(spans, forwards, backwards, steps).Mark(&evaluations);
  }
  std::unordered_map<uint16_t, uint32_t> root_of;  // by writer: the latest
  for (uint32_t row = 0; row < spans.size(); ++row) {
    if (spans[row].depth == 0) root_of[spans[row].writer] = row;
    const auto root = root_of.find(spans[row].writer);
    if (root != root_of.end() && spans[row].start < spans[root->second].end) {
      evaluations[row] = evaluations[root->second];
    }
  }
  return evaluations;
}

RecordedOperators SplitByEvaluation(const Trace& trace) {
  const std::vector<ModuleSpan>& spans = ModuleSpans(trace);
  const std::vector<bool> evaluations = EvaluationForwards(trace, spans);
  const TimeColumn& starts = trace.operators.start;
  RecordedOperators found;
  std::vector<Interval> moments;
  for (size_t row = 0; row < spans.size(); ++row) {
    if (spans[row].depth != 0 || !evaluations[row]) continue;
    const auto first = std::lower_bound(starts.begin(), starts.end(), spans[row].start);
    if (first == starts.end() || *first >= spans[row].end) continue;
    ++found.evaluations;
    moments.emplace_back(spans[row].start, spans[row].end);
  }
  moments = Merged(std::move(moments));
  for (const int64_t start : starts) {
    if (Within(moments, start, start + 1).empty()) found.training.push_back(start);
  }
  return found;
}

void LeaveOutEvaluations(const Trace& trace, StepList* steps) {
  const std::vector<ModuleSpan>& spans = ModuleSpans(trace);
  const std::vector<bool> evaluations = EvaluationForwards(trace, spans);
  struct Part {
    int64_t forwards = 0, start = 0, end = 0;
    bool trains = false;  // from here on
  };
  std::vector<Part> parts(steps->list.size());
  size_t with_any = 0;
  for (size_t row = 0; row < spans.size(); ++row) {
    if (spans[row].depth != 0) continue;
    const int64_t step = StepIndexAt(*steps, spans[row].start);
    if (step < 0) continue;
    Part& part = parts[static_cast<size_t>(step)];
    part.trains |= !evaluations[row];
    if (part.trains || spans[row].end >= steps->list[static_cast<size_t>(step)].end) continue;
    if (part.forwards++ == 0) {
      part.start = spans[row].start;
      ++with_any;
    }
    part.end = spans[row].end;
  }
  if (with_any == 0 || with_any * 2 > steps->list.size()) return;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].forwards == 0 || !parts[i].trains) continue;
    steps->evaluations += parts[i].forwards;
    steps->evaluation_ns += parts[i].end - parts[i].start;
    steps->list[i].start = parts[i].end;
  }
}

}  // namespace ranktap::collector

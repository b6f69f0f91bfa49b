// ProfilerStep#N in a Kineto trace, as viewers, HTA and TensorBoard look for it: on the thread of
// the training loop, and nested in that thread's other slices.
//
//   Optimizer.step      |-------------|          |-----------|
//   step, by its times              |-----------------|
//   its slice                          |---------------------|
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "collector/export/chrome/chrome_events.h"
#include "collector/facts/steps.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// The thread that made the most API calls of CUDA: that of the training loop.
int32_t LaunchingThread(const Trace& trace) {
  std::vector<size_t> calls(trace.writers.size() + 1);
  for (const uint16_t writer : trace.api_calls.writer) {
    ++calls[std::min<size_t>(writer, trace.writers.size())];
  }
  const auto most = std::max_element(calls.begin(), calls.end()) - calls.begin();
  return ThreadOf(trace, static_cast<uint16_t>(most));
}

// The thread whose ranges are the steps; of another source the one that launches.
int32_t ThreadOfSteps(const Trace& trace) {
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    if (trace.dictionary.Domain(trace.ranges.domain[i]) == kStepDomain) {
      return ThreadOf(trace, trace.ranges.writer[i]);
    }
  }
  return LaunchingThread(trace);
}

struct StepSlice {
  int64_t start, end;
  bool nests = true;
};

// Moves the ends of steps out of the slices of their thread that they lie in.
class NestedSteps {
 public:
  NestedSteps(const Trace& trace, const StepList& steps, int32_t thread)
      : trace_(trace), steps_(steps.list), thread_(thread) {
    for (const Step& step : steps_) slices_.push_back({step.start, step.end});
    begun_in_.resize(steps_.size());
    left_in_.resize(steps_.size());
    LookAtOperators();
    LookAt(trace.python_calls);
    LookAt(trace.api_calls);
    LookAt(trace.event_calls);
    LookAtRanges();
  }

  std::vector<StepSlice> Slices() {
    for (size_t i = 0; i < slices_.size(); ++i) Move(i);
    return std::move(slices_);
  }

 private:
  // The outermost slice that an end of a step lies in.
  struct Cut {
    int64_t start = 0, end = 0;
    void Widen(int64_t from, int64_t to) {
      if (to - from > end - start) *this = {from, to};
    }
  };

  template <typename Table>
  void LookAt(const Table& table) {
    for (size_t i = 0; i < table.size(); ++i) {
      if (ThreadOf(trace_, table.writer[i]) == thread_) LookAt(table.start[i], table.end[i]);
    }
  }
  void LookAtOperators() {
    const Operators& ops = trace_.operators;
    const std::vector<bool> across = OperatorsAcrossRanges(trace_);
    for (size_t i = 0; i < ops.size(); ++i) {
      if (across[i] || ThreadOf(trace_, ops.writer[i]) != thread_) continue;
      LookAt(ops.start[i], ops.end[i]);
    }
  }
  void LookAtRanges() {
    const Ranges& ranges = trace_.ranges;
    for (size_t i = 0; i < ranges.size(); ++i) {
      if (static_cast<RangeKind>(ranges.kind[i]) != RangeKind::kPushPop) continue;
      if (trace_.dictionary.Domain(ranges.domain[i]) == kStepDomain) continue;
      if (ThreadOf(trace_, ranges.writer[i]) == thread_) LookAt(ranges.start[i], ranges.end[i]);
    }
  }
  // Only a slice that begins or ends within a step can cross it.
  void LookAt(int64_t start, int64_t end) {
    const auto step_at = [this](int64_t time) {
      const auto after =
          std::upper_bound(steps_.begin(), steps_.end(), time,
                           [](int64_t at, const Step& step) { return at < step.start; });
      return after - steps_.begin() - 1;
    };
    const auto inside = [this](int64_t time, ptrdiff_t step) {
      return step >= 0 && time > steps_[step].start && time < steps_[step].end;
    };
    const ptrdiff_t first = step_at(start), last = step_at(end);
    if (inside(start, first) && end > steps_[first].end) left_in_[first].Widen(start, end);
    if (inside(end, last) && start < steps_[last].start) begun_in_[last].Widen(start, end);
  }

  void Move(size_t i) {
    StepSlice& slice = slices_[i];
    const int64_t before = i == 0 ? INT64_MIN : steps_[i - 1].end;
    const int64_t after = i + 1 < steps_.size() ? steps_[i + 1].end : INT64_MAX;
    if (begun_in_[i].end != 0) {
      const bool is_of_the_last = begun_in_[i].start < before;
      slice.start = is_of_the_last ? begun_in_[i].end : begun_in_[i].start;
    }
    if (left_in_[i].end != 0) {
      // A label of many steps that began in this one crosses it wherever its slice ends.
      slice.nests = left_in_[i].end < after;
      if (slice.nests) slice.end = left_in_[i].end;
    }
    const int64_t other = i == 0 || !slices_[i - 1].nests ? INT64_MIN : slices_[i - 1].end;
    if (slice.start >= other && slice.start < slice.end) return;
    slice = {steps_[i].start, steps_[i].end, false};
  }

  const Trace& trace_;
  const std::vector<Step>& steps_;
  int32_t thread_;
  std::vector<StepSlice> slices_;
  std::vector<Cut> begun_in_, left_in_;
};

}  // namespace

void WriteSteps(const Trace& trace, ChromeEvents* events) {
  constexpr std::string_view kStep = "ProfilerStep";
  const StepList& steps = DetectSteps(trace);
  const bool is_guess = steps.is_period && !events->options().hta_compat;
  if (steps.source.empty() || is_guess || steps.source.starts_with(kStep)) return;
  const int32_t thread = ThreadOfSteps(trace);
  const std::vector<StepSlice> slices = NestedSteps(trace, steps, thread).Slices();
  for (size_t i = 0; i < slices.size(); ++i) {
    const auto [start, end, nests] = slices[i];
    if (!events->options().Keeps(start, end)) continue;
    const int64_t track =
        nests ? thread : events->TrackApart("steps of", trace.info.pid, thread, start, end);
    JsonText name;
    name.Text(fmt::format("{}#{}", kStep, steps.list[i].number));
    events->BeginSlice("user_annotation", name.str(), trace.info.pid, track, start, end);
    events->EndArgs();
  }
}

}  // namespace ranktap::collector

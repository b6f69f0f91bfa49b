#include "collector/analysis/device_steps.h"

#include <algorithm>

namespace ranktap::collector {
namespace {

constexpr double kLaunchesKnown = 0.9;

// The work that one step launched.
struct Work {
  int64_t first = INT64_MAX, last = INT64_MIN;
  int64_t delay = 0;  // of the first, since its launch
  bool any() const { return first != INT64_MAX; }
};

// Empty where too few launches are known.
std::vector<Work> WorkOfSteps(const Trace& trace, const StepList& steps) {
  const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
  const bool computes = std::any_of(spans.begin(), spans.end(), [](const DeviceSpan& span) {
    return span.kind == WorkKind::kCompute;
  });
  std::vector<Work> work(steps.list.size());
  StepFinder finder(trace, steps);
  size_t launched = 0, seen = 0;
  for (const DeviceSpan& span : spans) {
    // Copies and collectives on streams of their own run ahead of a step, or after it.
    if (computes && span.kind != WorkKind::kCompute) continue;
    ++seen;
    if (span.launch == kNone) continue;
    ++launched;
    const int64_t step = finder.IndexOf(span);
    if (step < 0) continue;
    Work& of = work[static_cast<size_t>(step)];
    if (span.start < of.first) {
      of.first = span.start;
      // The device's clock may be off: nothing begins before its launch.
      of.delay = std::max<int64_t>(0, span.start - trace.api_calls.start[span.launch]);
    }
    of.last = std::max(of.last, span.end);
  }
  if (static_cast<double>(launched) < kLaunchesKnown * static_cast<double>(seen)) return {};
  return work;
}

void Place(const std::vector<Work>& work, std::vector<Step>* steps) {
  int64_t done = INT64_MIN;  // the work of all steps so far
  for (size_t i = 0; i < steps->size(); ++i) {
    Step& step = (*steps)[i];
    const int64_t begun = i == 0 ? step.start : std::max((*steps)[i - 1].start, step.start);
    step.start = std::max(begun, done);
    if (work[i].any()) {
      step.start = std::clamp(step.start, begun, std::max(begun, work[i].first));
      done = std::max(done, work[i].last);
    }
    step.end = std::max({step.start, step.end, done});
    if (i > 0) (*steps)[i - 1].end = std::min((*steps)[i - 1].end, step.start);
  }
}

double HostAhead(const std::vector<Work>& work, const std::vector<Step>& steps) {
  int64_t delays = 0, lengths = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].warm_up || !work[i].any()) continue;
    delays += work[i].delay;
    lengths += steps[i].length();
  }
  return lengths == 0 ? 0 : static_cast<double>(delays) / static_cast<double>(lengths);
}

DeviceSteps PlaceOnDevice(const Trace& trace) {
  const StepList& steps = DetectSteps(trace);
  DeviceSteps placed{.list = steps.list};
  if (steps.on_device || steps.list.empty()) return placed;
  const std::vector<Work> work = WorkOfSteps(trace, steps);
  if (work.empty()) return placed;
  Place(work, &placed.list);
  placed.host_ahead = HostAhead(work, placed.list);
  return placed;
}

}  // namespace

const DeviceSteps& StepsOnDevice(const Trace& trace) {
  return trace.memo.Get<DeviceSteps>([&trace] { return PlaceOnDevice(trace); });
}

}  // namespace ranktap::collector

#include "collector/facts/device_steps.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "collector/facts/backlog.h"
#include "collector/facts/steps.h"

namespace ranktap::collector {
namespace {

constexpr double kLaunchesKnown = 0.9;

constexpr double kSideStream = 0.1;  // of its device's compute, and less

// The work that steps follow each other with: what computes, but on no side stream. Copies,
// collectives and side streams run ahead of a step, or after it. All work where nothing computes.
class MainWork {
 public:
  explicit MainWork(const Trace& trace) {
    std::unordered_map<uint32_t, int64_t> of_device;
    for (const StreamWork& stream : WorkOfStreams(trace)) {
      of_device[stream.device] += stream.Of(WorkKind::kCompute).ns;
      any_computes_ |= stream.Of(WorkKind::kCompute).pieces > 0;
    }
    for (const StreamWork& stream : WorkOfStreams(trace)) {
      const auto compute = static_cast<double>(stream.Of(WorkKind::kCompute).ns);
      const auto all = static_cast<double>(of_device[stream.device]);
      if (compute > kSideStream * all) main_.emplace(stream.device, stream.stream);
    }
    is_main_ = main_.contains(last_);
  }
  bool Holds(const DeviceSpan& span) {
    if (!any_computes_) return true;
    if (span.kind != WorkKind::kCompute) return false;
    const std::pair stream(span.device, span.stream);
    if (stream != last_) {
      last_ = stream;
      is_main_ = main_.contains(stream);
    }
    return is_main_;
  }

 private:
  bool any_computes_ = false;
  std::set<std::pair<uint32_t, uint32_t>> main_;      // devices and their streams
  std::pair<uint32_t, uint32_t> last_{kNone, kNone};  // that was asked for
  bool is_main_ = false;
};

// The work that one step launched.
struct Work {
  int64_t first = INT64_MAX, last = INT64_MIN;
  int64_t delay = 0;  // of the first, since its launch
  bool any() const { return first != INT64_MAX; }
};

struct StepWork {
  std::vector<Work> steps;  // empty where too few launches are known
  int64_t backlog_end = INT64_MIN;
};

StepWork WorkOfSteps(const Trace& trace, const StepList& steps) {
  const DeviceSpans& spans = DeviceTimeline(trace);
  MainWork main(trace);
  const Backlog& backlog = BacklogOf(trace);
  StepWork work{.steps = std::vector<Work>(steps.list.size())};
  StepFinder finder(trace, steps);
  size_t launched = 0, seen = 0;
  for (const DeviceSpan& span : spans) {
    if (!main.Holds(span)) continue;
    if (backlog.Holds(span)) {
      work.backlog_end = std::max(work.backlog_end, span.end);
      continue;
    }
    ++seen;
    if (span.launch == kNone) continue;
    ++launched;
    const int64_t step = finder.IndexOf(span);
    if (step < 0) continue;
    Work& of = work.steps[static_cast<size_t>(step)];
    if (span.start < of.first) {
      of.first = span.start;
      // The device's clock may be off: nothing begins before its launch.
      of.delay = std::max<int64_t>(0, span.start - trace.api_calls.start[span.launch]);
    }
    of.last = std::max(of.last, span.end);
  }
  if (static_cast<double>(launched) < kLaunchesKnown * static_cast<double>(seen))
    work.steps.clear();
  return work;
}

// done: when the work of those before the first ends.
void Place(const std::vector<Work>& work, int64_t done, std::vector<Step>* steps) {
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
  const StepWork work = WorkOfSteps(trace, steps);
  if (work.steps.empty()) return placed;
  Place(work.steps, work.backlog_end, &placed.list);
  placed.host_ahead = HostAhead(work.steps, placed.list);
  return placed;
}

}  // namespace

const DeviceSteps& StepsOnDevice(const Trace& trace) {
  return trace.memo.Get<DeviceSteps>([&trace] { return PlaceOnDevice(trace); });
}

}  // namespace ranktap::collector

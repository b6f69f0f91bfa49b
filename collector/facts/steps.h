// The steps (iterations) of a training loop, found in a trace. Where only kernels tell, by name:
//
//   launched (us)  0 2 4       70 72 74    110 112 114  150 152 154   begins of kernels' launches
//   names          a b c        a  b  c      a   b   c    a   b   c   equal again after 3
//                  |-- step 0 --|-- step 1 --|-- step 2 --|           70, 40 and 40 us long
//
// Step 0 is warm-up: 70 us are over 1.5 medians of 40. The last three kernels have no known end.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/facts/device_timeline.h"
#include "collector/facts/step_list.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct Backlog;

// Steps of our own hook in PyTorch; else ProfilerStep#N annotations; else the NVTX range on one
// thread that is named like a step, or that repeats and covers most of the trace; else from one of
// torch.profiler's ranges "Optimizer.step#..." to the next; else, where
// nothing trains, the forwards of the root module that takes most time, each until the next; else
// the period of the sequence of kernel names (the first lag at which 95 % of the names are the same
// again, as FALCON does with collectives). A first or last one that did no work where others did,
// or is shorter than a twentieth of the median, is what a profiler's window cut off, and no step.
// Forwards and periods that span less than a twentieth of the recorded time are no steps.
// Worked out once and kept in the trace's memo.
const StepList& DetectSteps(const Trace& trace);

// When, on the devices, what repeats in the sequence of kernel names began each time, whatever
// steps the trace has; empty: nothing repeats.
std::vector<int64_t> StartsOfPeriods(const Trace& trace);

// The step in which the host was at `time`; -1: none.
int64_t StepIndexAt(const StepList& steps, int64_t time);

// The same for times and work that come nearly in order; both must outlive it.
class StepFinder {
 public:
  StepFinder(const Trace& trace, const StepList& steps) : trace_(trace), steps_(steps) {}
  [[gnu::always_inline]] int64_t IndexAt(int64_t time) {
    return start_ <= time && time < end_ ? last_ : IndexOfAnother(time);
  }
  // The step that launched the work, or in which it ran where no launch is known; -1 of what was
  // launched before the recording (Backlog).
  [[gnu::always_inline]] int64_t IndexOf(const DeviceSpan& span) {
    // A copy: where the piece itself went there, each would be made whole in memory.
    return span.launch == kNone && IsBacklog(DeviceSpan(span)) ? -1 : IndexByTime(span);
  }
  // The same for who has not found the steps yet, and so no backlog.
  [[gnu::always_inline]] int64_t IndexByTime(const DeviceSpan& span) {
    return IndexAt(span.launch == kNone || steps_.on_device ? span.start
                                                            : trace_.api_calls.start[span.launch]);
  }

 private:
  int64_t IndexOfAnother(int64_t time);
  bool IsBacklog(const DeviceSpan& span);

  const Trace& trace_;
  const StepList& steps_;
  const Backlog* backlog_ = nullptr;  // until work without a launch comes
  int64_t last_ = -1;                 // the step found last,
  int64_t start_ = 0, end_ = 0;       // and its times
};

}  // namespace ranktap::collector

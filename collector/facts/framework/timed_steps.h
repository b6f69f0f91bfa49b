// The training steps that durations and counts are taken from. A part of model_profile.h and
// throughput.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collector/facts/framework/op_modules.h"
#include "collector/facts/step_list.h"
#include "collector/file/result.h"

namespace ranktap::collector {

struct TimedSteps {
  std::vector<Step> list;          // at least one, by start, as the host ran them
  std::vector<int64_t> device_ns;  // their lengths as the devices ran them
  int64_t profiled = 0;            // the first one that was recorded operator by operator
  bool recorded = false;           // there was no other: recording operators slowed them
  bool Has(int64_t time) const;
  int64_t mean_ns() const;
};

// Those after the warm-up that were not recorded operator by operator, which is slower; without any
// all of them. With `wanted` that step alone. Fails with a sentence when there is none.
Result<TimedSteps> SelectTimedSteps(const Trace& trace, std::optional<int64_t> wanted = {});

// By step of DetectSteps: whether the events that begin at `starts` (sorted) were recorded in all
// of it. Capture opens and closes within a step, and nobody may divide by a step that a window cut
// off. A step is false if it holds less than half of what the fullest holds. All are true in a
// trace that is not our capture.
std::vector<bool> RecordedSteps(const Trace& trace, std::span<const int64_t> starts);

// How many training steps have a backward pass among the operators: a window opens and closes
// around the end of a step, and the optimizer's tail is not a step. At least 1.
int64_t CountRecordedSteps(const Trace& trace, const std::vector<OpPlace>& places);

}  // namespace ranktap::collector

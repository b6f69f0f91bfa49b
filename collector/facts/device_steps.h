// The steps of a training loop as its devices ran them: a step lives where its work runs.
#pragma once

#include <vector>

#include "collector/facts/step_list.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

struct DeviceSteps {
  // One for each of DetectSteps(trace).list, in its order, not overlapping. A step begins when the
  // work of those before it is done and the host has begun it, at the latest with its own first
  // work; it ends when host and work are done, at the latest with the next. These are the host's
  // times if the host waits for the device at each step's end.
  std::vector<Step> list;
  // How long the first work of a step lies behind its launch, in steps of mean length, over the
  // steps after the warm-up; over 1: the host runs ahead of the device by whole steps.
  double host_ahead = 0;
};

// The host's steps where launches are not known, or nothing ran. Worked out once and kept in the
// trace's memo.
const DeviceSteps& StepsOnDevice(const Trace& trace);

}  // namespace ranktap::collector

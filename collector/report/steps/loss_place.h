// The place in the program at which a loss arises, and what launched work waits for. A part of
// verdict.h.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct LossPlace {
  // ": mostly (80.0 %) for an event of stream 20, ..."; of Cause::kDependency alone.
  std::string waits_for;
  bool is_unseen = false;  // most of it is for what is not in the trace
  // ", 72.0 % of it in the backward pass, 65.0 % in module Net.fc"; empty where nothing of the kind
  // has more than half of the loss. Of Cause::kHost first the call of CUDA that the host sat in.
  std::string where;
};
// Filled for causes that are worth saying (MeanStep) and for kDependency; empty for all others.
using LossPlaces = std::array<LossPlace, kCauses>;

// By cause, over the counted steps of all ranks that used a device. An idle device's time belongs
// to the phase the host was in, and to the module and line that launched what runs next; the time
// of work to those that launched it. Worked out once and kept in the run's memo.
const LossPlaces& FindLossPlaces(const Run& run);

}  // namespace ranktap::collector

// CUPTI 13.2 where it cannot start (no driver, or one older than it): its first function that is
// called, whichever, calls itself until the process dies. So it is told by its exports, and called
// only where a process that the collector made for this has come out alive
// (collector/doctor/cupti_trial.h).
#pragma once

#include <cstdint>

namespace ranktap::proto {

// v1.CuptiTrialResult.Outcome.
enum class TrialOutcome : uint8_t {
  kUnknown = 0,
  kAlive = 1,
  kDied = 2,
  kNotTried = 3,
};

// `exports(name)`: whether the library has this function.
template <typename Exports>
bool IsDeadlyCupti(Exports&& exports) {
  return exports("cuptiActivityEnable_v2") && !exports("cuptiGetTimestamp_v2") &&
         !exports("cuptiActivityGetNextRecord_v2");
}

}  // namespace ranktap::proto

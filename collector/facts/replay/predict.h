// The step that a run would have had with changes, and whether the graph may be believed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "collector/facts/replay/changes.h"
#include "collector/file/result.h"

namespace ranktap::collector {

// The run replayed as it was, against the trace.
struct Identity {
  size_t steps = 0, disturbed = 0;  // by rank and number; by number (JobGraph::disturbed)
  double median_percent = 0, p95_percent = 0;  // that a step is off
  int64_t start_p95_ns = 0;                    // that the start of anything is off
  size_t edges = 0, violated = 0;
  double kept_gap_percent = 0;  // of the devices' idle time; only a kept gap explains it
  bool has_device = false;
  std::string broken;  // which bound it breaks and which edges are missing; empty: none
};
// A failure: nothing can be replayed at all.
Result<Identity> CheckIdentity(const Run& run);

struct CriticalPart {
  uint32_t trace = 0;
  std::string what;  // "backward", a kernel, "in collectives"
  int64_t ns = 0;    // per step
};

struct Prediction {
  int64_t before = 0, step = 0;  // medians
  int64_t low = 0, high = 0;
  std::vector<CriticalPart> critical;  // what the last step then waits for, the most first
  double gain_percent() const {
    return before == 0 ? 0
                       : 100.0 * static_cast<double>(before - step) / static_cast<double>(before);
  }
  // Half of the bounds' width.
  double doubt_percent() const {
    return step == 0 ? 100 : 50.0 * static_cast<double>(high - low) / static_cast<double>(step);
  }
};
inline constexpr double kWidestPercent = 10;

// A failure: a change names what the run does not have. Wider bounds than kWidestPercent are the
// caller's to refuse.
Result<Prediction> Predict(const Run& run, const std::vector<Change>& changes);

// Changes that a person may ask for without knowing the run, those that gain most first.
struct Candidate {
  Change change;
  Prediction prediction;
};
std::vector<Candidate> PredictAll(const Run& run);

}  // namespace ranktap::collector

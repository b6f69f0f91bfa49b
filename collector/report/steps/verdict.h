// The job's largest loss, in one sentence. Losses are the waterfall's causes but for compute:
//
//   waterfall, of a mean step of 4 ms       losses         share    recoverable
//     compute            15.00 us
//     sync            3'903.00 us     ->    sync           97.6 %   3'903 us    the sentence's
//     host               44.15 us           host            1.1 %      10 us
//     kernel latency     22.84 us           latency         0.6 %       9 us
//
// Recoverable is what the critical path bears, and never more than the loss.
#pragma once

#include <string>
#include <vector>

#include "collector/report/claims/losses.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct Verdict {
  std::string sentence;
  bool refused = false;          // shares of time would be wrong, or may be
  bool nothing_missing = false;  // refused for another reason than what is missing
  bool on_host = false;          // no device did anything: losses are what stops the host
  std::vector<Loss> losses;      // the largest first; empty when refused
  int64_t mean_step = 0;
};

Verdict Judge(const Run& run);

}  // namespace ranktap::collector

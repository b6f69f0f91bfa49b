// A CUPTI that ends the program where it does not start: the collector tries it in another process
// first (proto/cupti_trial.h), and until that has survived we call none of its functions.
// Runs on: Ask on the thread inside cuInit, Take on the sender, HasPassed on the drain thread, Note
// there and on the exiting thread.  May not: call CUPTI.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "agent/sources/cupti/cupti_api.h"
#include "proto/cupti_trial.h"

namespace ranktap::agent::cupti {

class Trial {
 public:
  // `began_ns` (CLOCK_MONOTONIC): since when kernels could have been recorded.
  void Ask(const LoadedApi& loaded, uint64_t began_ns);
  void Take(proto::TrialOutcome outcome) { outcome_.store(outcome); }

  bool may_call() const { return may_call_.load(); }
  // True once, when CUPTI may be called from now on. Says why not where that is known, or has not
  // been known for a minute; a collector that comes late may bring a better answer.
  [[nodiscard]] bool HasPassed(uint64_t now_ns, const std::string& path);
  // Once: why there are no kernels.
  void Note(const std::string& path);

 private:
  // kUnknown until the collector has said it; another CUPTI needs no trial.
  std::atomic<proto::TrialOutcome> outcome_{proto::TrialOutcome::kAlive};
  std::atomic<bool> may_call_{true}, is_noted_{false};
  uint64_t began_ns_ = 0;
};

}  // namespace ranktap::agent::cupti

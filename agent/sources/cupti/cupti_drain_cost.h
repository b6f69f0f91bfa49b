// The drain's cost, and how often CUPTI or memory failed it, for v1.Cost.
// Runs on: the drain thread; AddTo on any.  May not: allocate, wait.
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>

#include "agent/core/cost_fields.h"
#include "agent/core/host_clock.h"

namespace ranktap::agent::cupti {

class DrainCost {
 public:
  void CountTurn() { cpu_ns_.store(ended_cpu_ns_ + ClockNs(CLOCK_THREAD_CPUTIME_ID)); }
  void EndThread() { ended_cpu_ns_ = cpu_ns_.load(); }
  void CountFlush(bool succeeded) {
    if (!succeeded) errors_.fetch_add(1);
    flushes_.fetch_add(1);
  }
  void SetErrors(uint64_t errors) { errors_.store(errors); }
  void SetNamesMissing(uint64_t names) { names_missing_.store(names); }

  void AddTo(CostFields& cost) const {
    cost.drain_cpu_ns += cpu_ns_.load();
    cost.flushes += flushes_.load();
    cost.cupti_errors += errors_.load();
    cost.names_missing += names_missing_.load();
  }

 private:
  std::atomic<uint64_t> cpu_ns_{0}, flushes_{0}, errors_{0}, names_missing_{0};
  uint64_t ended_cpu_ns_ = 0;  // of threads before a pause
};

}  // namespace ranktap::agent::cupti

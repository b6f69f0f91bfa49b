// When CUPTI is asked next for what it has recorded.
// Runs on: the drain thread.  May not: read a clock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ranktap::agent::cupti {

class FlushSchedule {
 public:
  // `is_slow`: each call into this CUPTI takes longer than the last, so that few are made.
  void Begin(uint64_t now_ns, uint64_t every_ns, bool is_slow) {
    every_ns_ = every_ns;
    if (is_slow) SlowDown();
    Next(now_ns);
  }
  void SlowDown() { every_ns_ = std::max(every_ns_, kSlowEvery); }
  uint64_t at_ns() const { return at_ns_; }
  void Next(uint64_t now_ns) { at_ns_ = now_ns + every_ns_; }
  void NotBefore(uint64_t time_ns) { at_ns_ = std::max(at_ns_, time_ns); }

 private:
  static constexpr uint64_t kSlowEvery = 5'000'000'000;

  uint64_t every_ns_ = 0, at_ns_ = 0;
};

}  // namespace ranktap::agent::cupti

// When to try again: at waits that double.
// Runs on: the sender thread.  May not: be used from two threads.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ranktap::agent {

class Backoff {
 public:
  constexpr Backoff(uint64_t first_ns, uint64_t longest_ns)
      : first_ns_(first_ns), longest_ns_(longest_ns) {}

  bool IsDue(uint64_t now_ns) const { return now_ns >= at_ns_; }
  void SetTime(uint64_t at_ns) { at_ns_ = at_ns; }
  // The next wait is twice the last one. `noise`, any number, moves it by up to a quarter: who
  // failed together must not come back together.
  void Lengthen(uint64_t now_ns, uint64_t noise) {
    wait_ns_ = wait_ns_ == 0 ? first_ns_ : std::min(2 * wait_ns_, longest_ns_);
    at_ns_ = now_ns + wait_ns_ + noise % (wait_ns_ / 4);
  }
  // It went well: the next wait is the first again.
  void Reset() { wait_ns_ = 0; }

 private:
  uint64_t first_ns_, longest_ns_;
  uint64_t at_ns_ = 0, wait_ns_ = 0;
};

}  // namespace ranktap::agent

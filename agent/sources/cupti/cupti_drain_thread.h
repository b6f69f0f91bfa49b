// The life of the drain's thread: its start, its pauses, and its end, which the process waits for.
// Runs on: Start, Pause, TakeResume, Finish and AwaitEnd on the program's threads and the sender,
// the rest on the thread itself.  May not: wait but in AwaitEnd.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "agent/core/futex.h"
#include "agent/core/host_clock.h"
#include "agent/core/own_thread.h"

namespace ranktap::agent::cupti {

class DrainThread {
 public:
  // Runs body(owner); again only after that one's end. False: the system gives no thread.
  [[nodiscard]] bool Start(void (*body)(void* owner), void* owner) {
    // CUPTI's flush runs on it, and buffers that it completes: untouched, the size costs nothing.
    constexpr size_t kStackBytes = 8u << 20;
    const bool is_started = thread_.Start({.name = "ranktap-drain",
                                           .nice = 5,
                                           .stack_bytes = kStackBytes,
                                           .body = body,
                                           .owner = owner});
    runs_.store(is_started);
    return is_started;
  }
  bool runs() const { return runs_.load(); }

  // The body is to return after the round that it is at.
  void Pause() { is_paused_.store(true); }
  // Whether it was paused, and is so no more.
  [[nodiscard]] bool TakeResume() { return is_paused_.exchange(false); }

  void Finish() { is_finishing_.store(true); }
  // Until End, or `deadline_ns` (CLOCK_MONOTONIC); false: that came first.
  [[nodiscard]] bool AwaitEnd(uint64_t deadline_ns) {
    while (has_ended_.load() == 0) {
      const uint64_t now = NowNs();
      if (now >= deadline_ns) return false;
      FutexWait(has_ended_, 0, deadline_ns - now);
    }
    return true;
  }

  bool goes_on() const { return !is_finishing_.load() && !is_paused_.load(); }
  bool is_finishing() const { return is_finishing_.load(); }
  void End() {
    has_ended_.store(1);
    FutexWake(has_ended_);
  }

 private:
  OwnThread thread_;
  std::atomic<bool> runs_{false}, is_finishing_{false}, is_paused_{false};
  std::atomic<uint32_t> has_ended_{0};
};

}  // namespace ranktap::agent::cupti

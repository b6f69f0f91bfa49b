// CUPTI is the program's client's before it is ours: its thread asks for it here, and the drain
// thread gives it up and comes back later.
// Runs on: Ask, Await and GiveBack on the program's thread, the rest on the drain thread.
// May not: call CUPTI; wait but in Await.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/core/futex.h"
#include "agent/core/host_clock.h"

namespace ranktap::agent::cupti {

class ClientTurn {
 public:
  // `call`, of static storage, is the one that asks. Returns what Await needs; the drain thread is
  // to be woken in between.
  [[nodiscard]] uint32_t Ask(const char* call) {
    const uint32_t served = served_.load();
    wanted_by_.store(call);
    return served;
  }
  // Until Serve, or `deadline_ns` (CLOCK_MONOTONIC); false: that came first.
  [[nodiscard]] bool Await(uint32_t asked, uint64_t deadline_ns) {
    while (served_.load() == asked) {
      const uint64_t now = NowNs();
      if (now >= deadline_ns) return false;
      FutexWait(served_, asked, deadline_ns - now);
    }
    return true;
  }
  // The client has done; we may come back at `ours_at_ns`. False: we are never to.
  [[nodiscard]] bool GiveBack(uint64_t ours_at_ns) {
    if (ours_at_ns_.load() == kNever) return false;
    ours_at_ns_.store(ours_at_ns);
    return true;
  }

  // The call that waits for CUPTI, or nullptr.
  const char* wanted_by() const { return wanted_by_.load(); }
  // Nothing of ours is left in CUPTI.
  void Serve() {
    wanted_by_.store(nullptr);
    served_.fetch_add(1);
    FutexWake(served_);
  }

  // When we may try CUPTI; 0: at any time.
  uint64_t ours_at_ns() const { return ours_at_ns_.load(); }
  void ComeBackAt(uint64_t ours_at_ns) { ours_at_ns_.store(ours_at_ns); }
  void LeaveForGood() { ours_at_ns_.store(kNever); }

 private:
  static constexpr uint64_t kNever = UINT64_MAX;

  std::atomic<const char*> wanted_by_{nullptr};
  std::atomic<uint32_t> served_{0};
  std::atomic<uint64_t> ours_at_ns_{0};
};

}  // namespace ranktap::agent::cupti

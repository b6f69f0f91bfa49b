// Waiting on a word between two threads of this process.
// Runs on: any thread.  May not: wait on a user's thread but where its caller says so.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace ranktap::agent {

// Returns when `word` is no longer `expected`, after `timeout_ns`, or for no reason.
inline void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, uint64_t timeout_ns) {
  const timespec timeout{.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000),
                         .tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000)};
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, &timeout, nullptr, 0);
}

inline void FutexWake(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

// A process of two threads then does not live long: libc aborts.
inline bool FutexIsRefused() {
  std::atomic<uint32_t> nobodys{0};
  return syscall(SYS_futex, &nobodys, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0) < 0;
}

}  // namespace ranktap::agent

// What a thread of `dies` had done, in a file that outlives its process. Each count is raised after
// the call it counts has returned.
#pragma once

#include <atomic>
#include <cstdint>

inline constexpr int kLedgerThreads = 4;

struct LedgerLine {
  std::atomic<int32_t> thread;  // 0: never ran
  std::atomic<uint64_t> launches;
  std::atomic<uint64_t> ranges;
};

struct Ledger {
  LedgerLine lines[kLedgerThreads];
};

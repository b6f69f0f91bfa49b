// How far a long work has come, for whoever shows it. Any thread may add.
#pragma once

#include <atomic>
#include <cstdint>

namespace ranktap::collector {

struct WorkProgress {
  std::atomic<const char*> what = "reading";  // a literal
  std::atomic<uint64_t> total = 0;            // 0: not known
  std::atomic<uint64_t> done = 0;             // of the same unit

  void Begin(const char* name, uint64_t expected) {
    done = 0;
    total = expected;
    what = name;
  }
};

// The progress of this process. Its work is one after the other, each by several threads.
inline WorkProgress& Progress() {
  static WorkProgress progress;
  return progress;
}

}  // namespace ranktap::collector

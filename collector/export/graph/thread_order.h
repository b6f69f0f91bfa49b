// The order of a rank's host threads while a work graph is built: which node was the last of each,
// how long it has been idle, and what had ended elsewhere in that pause.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <vector>

namespace ranktap::collector {

class ThreadOrder {
 public:
  static constexpr uint32_t kNobody = UINT32_MAX;
  static constexpr uint32_t kCommunicator = UINT16_MAX + 1;  // the writer of what no thread ran

  struct Thread {
    uint32_t root = kNobody, last = kNobody;
    int64_t idle_since = 0;    // end of what ended last, or start of what is open
    uint32_t ended = kNobody;  // what ended last there
    int64_t ended_at = INT64_MIN;
  };

  // Made on demand.
  Thread& Of(uint32_t writer) { return threads_[writer]; }
  // kNobody: nothing of that writer has come.
  uint32_t LastOf(uint32_t writer) const;
  // `node` of `writer` has begun and ends at `end`.
  void Open(uint32_t writer, uint32_t node, int64_t end) { open_.push({end, writer, node}); }
  // Takes in what had ended by `time`.
  void Settle(int64_t time);
  // The thread whose last node ended latest between `writer`'s pause and `start`, or null: none
  // did, or the pause is too short for a wait.
  const Thread* AwaitedBy(uint32_t writer, int64_t start) const;

 private:
  struct OpenNode {
    int64_t end = 0;
    uint32_t writer = 0, node = 0;
    bool operator>(const OpenNode& other) const { return end > other.end; }
  };

  std::map<uint32_t, Thread> threads_;  // by writer
  std::priority_queue<OpenNode, std::vector<OpenNode>, std::greater<>> open_;
};

}  // namespace ranktap::collector

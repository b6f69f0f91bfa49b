#include "collector/export/graph/thread_order.h"

#include <algorithm>

namespace ranktap::collector {

uint32_t ThreadOrder::LastOf(uint32_t writer) const {
  const auto thread = threads_.find(writer);
  return thread == threads_.end() ? kNobody : thread->second.last;
}

void ThreadOrder::Settle(int64_t time) {
  for (; !open_.empty() && open_.top().end <= time; open_.pop()) {
    const OpenNode& node = open_.top();
    Thread& thread = threads_[node.writer];
    thread.ended = node.writer == kCommunicator ? node.node : thread.last;
    thread.ended_at = node.end;
    thread.idle_since = std::max(thread.idle_since, node.end);
  }
}

const ThreadOrder::Thread* ThreadOrder::AwaitedBy(uint32_t writer, int64_t start) const {
  constexpr int64_t kPause = 10'000;  // ns
  const int64_t idle_since = threads_.at(writer).idle_since;
  if (start - idle_since < kPause) return nullptr;
  const Thread* latest = nullptr;
  for (const auto& [other_writer, other] : threads_) {
    if (other_writer == writer || other.ended == kNobody) continue;
    if (other.ended_at <= idle_since || other.ended_at > start) continue;
    if (latest == nullptr || other.ended_at > latest->ended_at) latest = &other;
  }
  return latest;
}

}  // namespace ranktap::collector

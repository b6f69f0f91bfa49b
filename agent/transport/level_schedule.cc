// Instants of orders in our own clock.
// Runs on: the sender thread.  May not: wait.
#include "agent/transport/level_schedule.h"

#include <algorithm>
#include <utility>

namespace ranktap::agent {
namespace {

// A distance, not a sum: whatever instant is named, nothing overflows.
uint64_t OnOurClock(uint64_t at_realtime_ns, uint64_t now_ns, uint64_t realtime_ns) {
  if (at_realtime_ns <= realtime_ns) return now_ns;
  const uint64_t ahead = at_realtime_ns - realtime_ns;
  return ahead < LevelSchedule::kNever - now_ns ? now_ns + ahead : LevelSchedule::kNever - 1;
}

}  // namespace

void LevelSchedule::Take(const LevelOrder& order, uint64_t now_ns, uint64_t realtime_ns) {
  const uint64_t at = OnOurClock(order.at_realtime_ns, now_ns, realtime_ns);
  std::erase_if(entries_, [at](const Entry& entry) { return entry.at_ns >= at; });
  entries_.push_back({at, order});
  if (order.until_realtime_ns == 0) return;
  LevelOrder end = order;
  end.level =
      order.level_after == proto::Level::kUnknown ? proto::Level::kDormant : order.level_after;
  entries_.push_back(
      {std::max(at, OnOurClock(order.until_realtime_ns, now_ns, realtime_ns)), std::move(end)});
}

std::optional<LevelOrder> LevelSchedule::TakeDue(uint64_t now_ns) {
  std::optional<LevelOrder> due;
  size_t taken = 0;
  for (; taken < entries_.size() && entries_[taken].at_ns <= now_ns; ++taken) {
    due = std::move(entries_[taken].order);
  }
  entries_.erase(entries_.begin(), entries_.begin() + static_cast<ptrdiff_t>(taken));
  return due;
}

}  // namespace ranktap::agent

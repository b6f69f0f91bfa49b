// Decides which records belong to a window.
// Runs on: see cupti_window.h.  May not: call CUPTI, wait.
#include "agent/sources/cupti/cupti_window.h"

#include <optional>
#include <utility>

namespace ranktap::agent::cupti {
namespace {

bool IsLater(uint32_t id, uint32_t than) { return static_cast<int32_t>(id - than) > 0; }

// The launch of a kernel, or of a graph as a whole.
std::optional<uint32_t> LaunchOf(const Record& record) {
  switch (record.kind) {
    case Kind::kConcurrentKernel:
      return reinterpret_cast<const KernelRecord&>(record).correlation;
    case Kind::kGraphTrace:
      return reinterpret_cast<const GraphTraceRecord&>(record).correlation;
    default:
      return std::nullopt;
  }
}

// The correlation id of records that belong to a call.
std::optional<uint32_t> CorrelationOf(const Record& record) {
  switch (record.kind) {
    case Kind::kMemcpy:
      return reinterpret_cast<const MemcpyRecord&>(record).correlation;
    case Kind::kMemcpy2:
      return reinterpret_cast<const PeerMemcpyRecord&>(record).correlation;
    case Kind::kMemset:
      return reinterpret_cast<const MemsetRecord&>(record).correlation;
    case Kind::kSynchronization:
      return reinterpret_cast<const SynchronizationRecord&>(record).correlation;
    case Kind::kMemory2:
      return reinterpret_cast<const MemoryRecord&>(record).correlation;
    default:
      return LaunchOf(record);
  }
}

}  // namespace

bool Window::Takes(const Record& record) {
  KeepNewest(record);
  if (!is_closing_) return true;
  const std::optional<uint32_t> correlation = CorrelationOf(record);
  if (correlation && IsLater(*correlation, last_correlation_)) return false;
  ++records_;
  last_launch_seen_ |= correlation == last_launch_;
  return true;
}

void Window::KeepNewest(const Record& record) {
  const std::optional<uint32_t> launch = LaunchOf(record);
  if (launch && IsLater(*launch, newest_launch_)) newest_launch_ = *launch;
}

void Window::Close(const ThreadStates::LastCalls& last, bool all_came) {
  last_correlation_ = last.correlation;
  last_launch_ = last.launch;
  // Nothing launched, or all of it has come already.
  last_launch_seen_ = last.launch == 0 || (last.launch == newest_launch_ && all_came);
  records_before_round_ = records_;
  is_closing_ = true;
}

bool Window::EndRound() {
  const uint64_t before = std::exchange(records_before_round_, records_);
  return last_launch_seen_ && records_ == before;
}

bool Window::IsAfterPark(const Record& record, uint32_t next_first) const {
  const std::optional<uint32_t> launch = LaunchOf(record);
  if (!launch || !IsLater(*launch, parked_after_)) return false;
  return next_first == 0 || IsLater(next_first, *launch);
}

}  // namespace ranktap::agent::cupti

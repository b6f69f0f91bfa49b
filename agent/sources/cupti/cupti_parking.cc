// Between the windows of a CUPTI whose kernel kind is not safe to disable.
// Runs on: the drain thread.  May not: disable that kind, but for the program's own client.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_drain.h"

namespace ranktap::agent::cupti {
namespace {

bool StaysOn(Kind kind) { return kind == Kind::kConcurrentKernel || kind == Kind::kGraphTrace; }

}  // namespace

void Session::Park() {
  const auto rest = std::ranges::partition(enabled_, StaysOn);
  std::vector<Kind> kept(enabled_.begin(), rest.begin());
  enabled_.erase(enabled_.begin(), rest.begin());
  std::vector<Setting> found = std::exchange(found_, {});
  const std::optional<uint32_t> found_thread_ids = std::exchange(found_thread_ids_, {});
  Disarm();
  enabled_ = std::move(kept);
  found_ = std::move(found);
  found_thread_ids_ = found_thread_ids;
  callbacks_registered_ = parked_ = true;
}

void Drain::LeaveSession() {
  if (!FeaturesOf(loaded_.version).kernel_kind_stays) return session_->Disarm();
  session_->Park();
  parked_after_ = window_last_correlation_;
  parked_.store(true);
}

// For a client that is to find nothing of ours. In the end it disables that kind itself.
void Drain::Unpark() {
  parked_.store(false);
  if (!session_->parked()) return;
  session_->DisableKinds();
  (void)loaded_.api.ActivityFlushAll(kFlushForced);
  DrainCompleted();
  session_->Disarm();
  DrainCompleted();
}

// Launched after the last window and before this one: nobody has seen its call.
bool Drain::IsOfAGap(const Record& record) const {
  if (!session_->was_parked()) return false;
  uint32_t correlation = 0;
  if (record.kind == Kind::kConcurrentKernel) {
    correlation = reinterpret_cast<const KernelRecord&>(record).correlation;
  } else if (record.kind == Kind::kGraphTrace) {
    correlation = reinterpret_cast<const GraphTraceRecord&>(record).correlation;
  } else {
    return false;
  }
  if (static_cast<int32_t>(correlation - parked_after_) <= 0) return false;
  const uint32_t first = g_callbacks.first_correlation.load(std::memory_order_relaxed);
  return session_->parked() || first == 0 || static_cast<int32_t>(correlation - first) < 0;
}

}  // namespace ranktap::agent::cupti

// Between the windows of a CUPTI whose kernel kind is not safe to disable.
// And what a client's thread asks of the drain. Runs on: the drain thread; YieldToClient and
// ResumeAfterClient on the program's.  May not: disable that kind, but for the program's own
// client.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "agent/core/agent_state.h"
#include "agent/core/capture_state.h"
#include "agent/core/futex.h"
#include "agent/core/host_clock.h"
#include "agent/core/log.h"
#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_drain.h"

namespace ranktap::agent::cupti {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

uint64_t NowNs() { return ClockNs(CLOCK_MONOTONIC); }

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

void Drain::YieldToClient(const char* why) {
  constexpr uint64_t kYieldPatience = 5'000 * kMillisecond;
  ClearCapture(kCaptureCuda);
  // Not armed at this moment, the drain thread may be about to be.
  if (!thread_runs_.load() || finish_.load()) return;
  const uint32_t served = client_served_.load();
  client_wants_.store(why);
  buffers_.Wake();
  const uint64_t deadline = NowNs() + kYieldPatience;
  while (client_served_.load() == served) {
    const uint64_t now = NowNs();
    if (now >= deadline) return Log("CUPTI was not given up in time", why);
    FutexWait(client_served_, served, deadline - now);
  }
}

void Drain::ResumeAfterClient() {
  if (retry_at_ns_.load() == kNever) return;
  // Some grace: profilers stop and start again between two steps.
  retry_at_ns_.store(NowNs() + Config().return_ms * kMillisecond);
  buffers_.Wake();
}

}  // namespace ranktap::agent::cupti

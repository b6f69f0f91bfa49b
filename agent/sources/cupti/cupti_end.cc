// The drain's end and its pauses, and what the process must leave inside CUPTI.
// Runs on: the exiting thread, the one that pauses; CountKernel on the drain thread.  May not: call
// CUPTI.
#include <string>

#include "agent/core/futex.h"
#include "agent/core/host_clock.h"
#include "agent/core/log.h"
#include "agent/sources/cupti/cupti_drain.h"

namespace ranktap::agent::cupti {
namespace {

uint64_t NowNs() { return ClockNs(CLOCK_MONOTONIC); }

}  // namespace

// False: the process has declared it lost with all that it had not seen by then. What stands in a
// graph, or was launched by a kernel, is not among those: no call of ours stands for it.
bool Drain::CountKernel(const Record& record) {
  if (IsOfAGap(record)) return false;
  if (record.kind != Kind::kConcurrentKernel) return true;
  const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
  const bool by_device = loaded_.version >= kVersion130 && kernel.device_launched != 0;
  if (kernel.graph != 0 || by_device) return true;
  return (kernels_.fetch_add(1) & kGaveUp) == 0;
}

// The process cannot wait for CUPTI, or for room in the rings: what it launched and what has no
// record yet is declared lost.
void Drain::DeclareHeld() {
  const uint64_t kernels = kernels_.fetch_or(kGaveUp), launches = ThreadStates::CountLaunches();
  if (launches <= kernels) return;
  ThreadStates::LoseWithoutWriter(proto::Loss::kUnflushed, launches - kernels);
  Log("kernels whose records were still inside CUPTI: " + std::to_string(launches - kernels));
}

void Drain::Pause() {
  if (!thread_runs_.load()) return;
  paused_.store(true);
  buffers_.Wake();
}

void Drain::Resume() {
  if (!paused_.exchange(false)) return;
  if (!StartThread() && armed_.load()) DeclareHeld();
}

void Drain::Finish(uint64_t deadline_ns) {
  if (!thread_runs_.load()) return;
  finish_.store(true);
  buffers_.Wake();
  if (!may_call_.load()) NoteTrial();
  if (!armed_.load()) return;  // nothing is to come
  while (finished_.load() == 0) {
    const uint64_t now = NowNs();
    if (now >= deadline_ns) {
      Log("CUPTI's last records did not come in time");
      return DeclareHeld();
    }
    FutexWait(finished_, 0, deadline_ns - now);
  }
}

}  // namespace ranktap::agent::cupti

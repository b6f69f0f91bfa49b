// The drain's end, and what the process must leave inside CUPTI.
// Runs on: the exiting thread; CountKernel on the drain thread.  May not: call CUPTI.
#include <string>

#include "agent/core/announcements.h"
#include "agent/core/futex.h"
#include "agent/core/host_clock.h"
#include "agent/core/log.h"
#include "agent/sources/cupti/cupti_drain.h"

namespace ranktap::agent::cupti {
namespace {

uint64_t NowNs() { return ClockNs(CLOCK_MONOTONIC); }

}  // namespace

// Not the nodes of graphs, nor what kernels launched: no call of ours stands for those.
void Drain::CountKernel(const Record& record) {
  if (record.kind != Kind::kConcurrentKernel) return;
  const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
  const bool by_device = loaded_.version >= kVersion130 && kernel.device_launched != 0;
  if (kernel.graph == 0 && !by_device) kernels_.fetch_add(1);
}

// The process cannot wait for CUPTI, or for room in the rings: what it launched and what has no
// record yet is declared lost.
void Drain::DeclareHeld() {
  gave_up_.store(true);
  const uint64_t launches = ThreadStates::CountLaunches(), kernels = kernels_.load();
  if (launches <= kernels) return;
  ThreadStates::LoseWithoutWriter(proto::Loss::kUnflushed, launches - kernels);
  const std::string note =
      std::to_string(launches - kernels) +
      " kernels were launched whose records were still inside CUPTI at the end";
  Log(note);
  AnnounceNote(note);
}

void Drain::Finish(uint64_t deadline_ns) {
  if (!thread_runs_.load()) return;
  finish_.store(true);
  buffers_.Wake();
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

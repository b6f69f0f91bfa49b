// What a thread did since the look before, by its CPU's clock.
// Runs on: the sampler.  May not: allocate.
#include "agent/sources/samples/process_looks.h"

#include <limits>

namespace ranktap::agent::samples {

using proto::SampleState;

void ProcessLooks::BeginRound(uint64_t now_ns, uint64_t now_ticks) {
  passed_ns_ = now_ns - began_ns_;
  began_ns_ = now_ns;
  runs_.BeginRound(now_ticks);
}

void ProcessLooks::Add(const proto::PythonThread& thread, uint32_t frame,
                       const LookCounts& counts) {
  if (found_count_ == found_.size()) return;
  Look look{
      .thread = thread.thread, .frame = frame, .state = SampleState::kWaits, .counts = counts};
  const uint64_t ran = runs_.SinceLook(look.thread, 0, look.counts[0]);
  const bool is_known = ran != std::numeric_limits<uint64_t>::max();
  if (is_known && ran * 2 >= passed_ns_) look.state = SampleState::kOnCpu;
  // The lock wakes a thread up every 5 ms: one that has not run at all waits for something else.
  const bool may_want_gil =
      look.state == SampleState::kWaits && !thread.holds_gil && is_known && ran != 0;
  hopefuls_ += may_want_gil ? 1 : 0;
  found_[found_count_++] = {look, may_want_gil};
}

void ProcessLooks::EndProcess(uint32_t gil_waiters, SampleLines& lines) {
  // Which of them the lock's waiters are is not known where there are more that may be.
  const bool are_waiters = hopefuls_ > 0 && hopefuls_ <= gil_waiters;
  for (size_t i = 0; i < found_count_; ++i) {
    auto& [look, may_want_gil] = found_[i];
    if (may_want_gil && are_waiters) look.state = SampleState::kWantsGil;
    runs_.Add(look, lines);
  }
  found_count_ = hopefuls_ = 0;
}

}  // namespace ranktap::agent::samples

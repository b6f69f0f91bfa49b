#include "collector/facts/shared_clock.h"

#include <algorithm>
#include <set>
#include <string>

namespace ranktap::collector {
namespace {

bool AreOnOneHost(const Run& run) {
  std::set<std::string> hosts;
  for (const Trace& trace : run.traces) {
    if (!trace.is_ours() || trace.info.host.empty()) return false;
    hosts.insert(trace.info.host);
  }
  return hosts.size() == 1;
}

}  // namespace

SharedClock::SharedClock(const Run& run)
    : is_of_one_host_(run.traces.size() < 2 || AreOnOneHost(run)) {
  if (is_of_one_host_) return;
  differences_ = AlignClocks(run, MatchCollectives(run));
  is_known_ = std::ranges::all_of(differences_, &ClockDifference::known);
  for (const ClockDifference& clock : differences_) {
    residual_ns_ = std::max(residual_ns_, static_cast<int64_t>(clock.residual_ns));
  }
}

int64_t SharedClock::At(uint32_t trace, int64_t time) const {
  if (trace >= differences_.size() || !differences_[trace].known) return time;
  const ClockDifference& clock = differences_[trace];
  const double since = static_cast<double>(time) - clock.offset_ns - static_cast<double>(clock.at);
  return clock.at + static_cast<int64_t>(since / (1 + clock.drift_ppm / 1e6));
}

const SharedClock& SharedClockOf(const Run& run) {
  return run.memo.Get<SharedClock>([&run] { return SharedClock(run); });
}

}  // namespace ranktap::collector

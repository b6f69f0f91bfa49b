// A CUPTI of which we do not know yet whether it may be called.
// Runs on: see cupti_trial.h.  May not: call CUPTI.
#include "agent/sources/cupti/cupti_trial.h"

#include "agent/core/announcements.h"
#include "agent/sources/cupti/cupti_encode.h"

namespace ranktap::agent::cupti {

using proto::TrialOutcome;

void Trial::Ask(const LoadedApi& loaded, uint64_t began_ns) {
  began_ns_ = began_ns;
  may_call_.store(false);
  outcome_.store(TrialOutcome::kUnknown);
  Announce(proto::FrameType::kCuptiTrial, true, EncodeTrial(loaded, ReadDriverFacts()));
}

bool Trial::HasPassed(uint64_t now_ns, const std::string& path) {
  constexpr uint64_t kPatienceNs = 60'000'000'000;
  if (may_call_.load()) return false;
  const TrialOutcome outcome = outcome_.load();
  if (outcome == TrialOutcome::kAlive) {
    may_call_.store(true);
    return true;
  }
  if (outcome != TrialOutcome::kUnknown || now_ns > began_ns_ + kPatienceNs) Note(path);
  return false;
}

void Trial::Note(const std::string& path) {
  if (is_noted_.exchange(true)) return;
  const TrialOutcome outcome = outcome_.load();
  const char* const why =
      outcome == TrialOutcome::kDied
          ? "does not start here and would end the program: it has ended a process that tried it"
      : outcome == TrialOutcome::kNotTried
          ? "ends a program where it does not start, and the collector could not try it here"
          : "ends a program where it does not start, and nobody has said yet that it does";
  LogAndAnnounce(std::string("no kernels: CUPTI 13.2 ") + why + " (" + path + ")");
}

}  // namespace ranktap::agent::cupti

// A CUPTI of which we do not know yet whether or as what it may be used.
// Runs on: the thread inside cuInit (AskForTrial, MakeTables), the sender (TakeTrial), the exiting
// thread (NoteTrial), the drain thread.  May not: call a CUPTI that is on trial.
#include <string>

#include "agent/core/agent_state.h"
#include "agent/core/announcements.h"
#include "agent/core/host_clock.h"
#include "agent/core/log.h"
#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_drain.h"
#include "agent/sources/cupti/cupti_encode.h"

namespace ranktap::agent::cupti {

using proto::TrialOutcome;

namespace {

void Note(const std::string& text) {
  Log(text);
  AnnounceNote(text);
}

}  // namespace

// What depends on the version; while nothing is armed.
void Drain::MakeTables() {
  if (may_call_.load()) calls_.Build(loaded_.api, Names());
  Features features = FeaturesOf(loaded_.version);
  features.launches_by_driver_alone |= Config().driver_launches;
  session_.emplace(loaded_, calls_, features);
  records_.emplace(loaded_.version, Names());
}

void Drain::AskForTrial() {
  may_call_.store(false);
  trial_.store(TrialOutcome::kUnknown);
  Announce(proto::kCuptiTrial, true, EncodeTrial(loaded_, ReadDriverFacts()));
  MarkGap(proto::GapReason::kError, "this CUPTI is tried in another process first");
}

void Drain::TakeTrial(TrialOutcome outcome) {
  trial_.store(outcome);
  buffers_.Wake();
}

// A collector that comes late may bring a better answer.
void Drain::HeedTrial() {
  constexpr uint64_t kPatienceNs = 60'000'000'000;
  if (may_call_.load()) return;
  const TrialOutcome outcome = trial_.load();
  if (outcome == TrialOutcome::kAlive) {
    may_call_.store(true);
    MakeTables();
    EndGap();
  } else if (outcome != TrialOutcome::kUnknown ||
             ClockNs(CLOCK_MONOTONIC) > began_ns_ + kPatienceNs) {
    NoteTrial();
  }
}

void Drain::NoteTrial() {
  if (trial_noted_.exchange(true)) return;
  const TrialOutcome outcome = trial_.load();
  const char* const why =
      outcome == TrialOutcome::kDied
          ? "does not start here and would end the program: it has ended a process that tried it"
      : outcome == TrialOutcome::kNotTried
          ? "ends a program where it does not start, and the collector could not try it here"
          : "ends a program where it does not start, and nobody has said yet that it does";
  Note(std::string("no kernels: CUPTI 13.2 ") + why + " (" + loaded_.path + ")");
}

// 13.3 and later do not say their version before a subscription has brought them up. Before
// anything is enabled: no callback reads the tables.
void Drain::LearnVersion() {
  if (!loaded_.version_is_guess) return;
  Subscriber subscriber = nullptr;
  if (loaded_.api.Subscribe(&subscriber, &OnCallback, nullptr) != kSuccess) return;
  uint32_t version = 0;
  const bool is_known = loaded_.api.GetVersion(&version) == kSuccess && version >= kVersion118 &&
                        version < kFirstUnknownVersion;
  (void)loaded_.api.Unsubscribe(subscriber);
  loaded_.version_is_guess = false;
  if (!is_known) {
    return Note("CUPTI does not say its version: it is taken for " +
                std::to_string(loaded_.version) + " (" + loaded_.path + ")");
  }
  loaded_.version = version;
  Announce(proto::FrameType::kAmend, true, EncodeLibraries(loaded_, ReadDriverFacts()));
  MakeTables();
}

}  // namespace ranktap::agent::cupti

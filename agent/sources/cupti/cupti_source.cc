// Joins the drain thread to the agent's life.
// Runs on: the thread inside cuInit, the sender, the exiting thread; Pause and Resume on one of the
// program's. May not: wait in SetLevel.
#include "agent/sources/cupti/cupti_source.h"

#include <atomic>

#include "agent/core/contain.h"
#include "agent/sources/cupti/cupti_drain.h"
#include "agent/sources/cupti/cupti_watch.h"
#include "agent/stacks/stack_capture.h"

namespace ranktap::agent {
namespace {

constinit std::atomic<cupti::Drain*> g_drain{nullptr};
constinit std::atomic<proto::Level> g_wanted{proto::Level::kUnknown};
constinit std::atomic<proto::TrialOutcome> g_trial{proto::TrialOutcome::kUnknown};

}  // namespace

// Made at cuInit, since only then is there a driver to ask.
void BeginCupti(proto::Level level) {
  auto* drain = new cupti::Drain;
  // We do not go without kernels because of one refused allocation.
  constexpr int kTries = 3;
  bool is_prepared = false;
  for (int i = 0; i < kTries; ++i) {
    if (HadMemory([&] { is_prepared = drain->Prepare(); })) break;
  }
  if (!is_prepared) return;
  drain->ApplyLevel(level);
  if (!drain->StartThread()) return;
  g_drain.store(drain);
  // Loading CUPTI takes milliseconds: who had something to tell meanwhile found no drain.
  if (const auto outcome = g_trial.load(); outcome != proto::TrialOutcome::kUnknown) {
    drain->TakeTrial(outcome);
  }
  const proto::Level now = g_wanted.load();
  if (now != proto::Level::kUnknown && now != level) {
    drain->RequestLevel(now, proto::GapReason::kLevel);
  }
}

void SetCuptiLevel(proto::Level level, proto::GapReason reason) {
  g_wanted.store(level);
  if (cupti::Drain* drain = g_drain.load()) drain->RequestLevel(level, reason);
}

void TellCuptiTrial(proto::TrialOutcome outcome) {
  g_trial.store(outcome);
  if (cupti::Drain* drain = g_drain.load()) drain->TakeTrial(outcome);
}

void FinishCupti(uint64_t deadline_ns) {
  if (cupti::Drain* drain = g_drain.load()) drain->Finish(deadline_ns);
}

void PauseCupti() {
  if (cupti::Drain* drain = g_drain.load()) drain->Pause();
}

void ResumeCupti() {
  if (cupti::Drain* drain = g_drain.load()) drain->Resume();
}

void AddCuptiCost(CostFields& cost) {
  cupti::NoteHang();
  if (const cupti::Drain* drain = g_drain.load()) drain->AddCost(cost);
  stacks::AddStackCost(cost);
}

}  // namespace ranktap::agent

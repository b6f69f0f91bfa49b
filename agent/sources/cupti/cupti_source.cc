// Joins the drain thread to the agent's life.
// Runs on: the thread inside cuInit, the sender, the exiting thread.  May not: wait in SetLevel.
#include "agent/sources/cupti/cupti_source.h"

#include <atomic>

#include "agent/sources/cupti/cupti_drain.h"
#include "agent/stacks/stack_capture.h"

namespace ranktap::agent {
namespace {

class CuptiSourceType final : public Source {
 public:
  std::string_view name() const override { return "cupti"; }

  // Made at cuInit, since only then is there a driver to ask.
  void Begin(proto::Level level) {
    auto* drain = new cupti::Drain;
    if (!drain->Prepare()) return;
    drain->ApplyLevel(level);
    if (!drain->StartThread()) return;
    drain_.store(drain);
    // Loading CUPTI takes milliseconds: a window that began meanwhile found no drain to tell.
    const proto::Level now = wanted_.load();
    if (now != proto::Level::kUnknown && now != level) {
      drain->RequestLevel(now, proto::GapReason::kLevel);
    }
  }

  void SetLevel(proto::Level level, proto::GapReason reason) override {
    wanted_.store(level);
    if (cupti::Drain* drain = drain_.load()) drain->RequestLevel(level, reason);
  }
  void Finish(uint64_t deadline_ns) override {
    if (cupti::Drain* drain = drain_.load()) drain->Finish(deadline_ns);
  }
  void AddCost(CostFields& cost) const override {
    if (const cupti::Drain* drain = drain_.load()) drain->AddCost(cost);
    stacks::AddStackCost(cost);
  }

 private:
  std::atomic<cupti::Drain*> drain_{nullptr};
  std::atomic<proto::Level> wanted_{proto::Level::kUnknown};
};

constinit CuptiSourceType g_source;

}  // namespace

Source& CuptiSource() { return g_source; }

void BeginCupti(proto::Level level) { g_source.Begin(level); }

}  // namespace ranktap::agent

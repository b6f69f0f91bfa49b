// The registry's entry.
// Runs on: the sender thread, the exiting thread.  May not: call into Python, but
// to queue a call on its main thread.
#include "agent/sources/torch/torch_source.h"

#include "agent/sources/torch/torch_steps.h"

namespace ranktap::agent {
namespace {

class TorchSourceType final : public Source {
 public:
  std::string_view name() const override { return "torch"; }
  // The level's bit decides what the functions record.
  void SetLevel(proto::Level level, proto::GapReason) override {
    if (level >= proto::Level::kFull) WakePython();
  }
  void Finish(uint64_t) override {}
  void AddCost(CostFields&) const override {}
};

constinit TorchSourceType g_source;

}  // namespace

Source& TorchSource() { return g_source; }

}  // namespace ranktap::agent

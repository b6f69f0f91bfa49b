// The registry's entry.
// Runs on: the sender thread.  May not: call into Python, but to queue a call on its main thread.
#include "agent/sources/torch/torch_source.h"

#include "agent/sources/torch/torch_labels.h"
#include "agent/sources/torch/torch_steps.h"

namespace ranktap::agent {

// The level's bit decides what the functions record.
void SetTorchLevel(proto::Level level, proto::GapReason) {
  if (level >= proto::Level::kFull) {
    WakePython();
  } else {
    EndTimeOfLabels();
  }
}

}  // namespace ranktap::agent

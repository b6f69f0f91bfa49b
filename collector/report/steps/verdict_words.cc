#include "collector/report/steps/verdict_words.h"

namespace ranktap::collector {

std::string_view DescribeLoss(Cause cause) {
  switch (cause) {
    case Cause::kTransfer:
      return "communication that nothing computes behind";
    case Cause::kMemory:
      return "copies and memsets that nothing computes behind";
    case Cause::kCheckpoint:
      return "an idle device while the host saves a checkpoint";
    case Cause::kCollection:
      return "an idle device while Python collects garbage";
    case Cause::kDataLoading:
      return "an idle device while the host loads data";
    case Cause::kCapture:
      return "an idle device while the host captures CUDA graphs";
    case Cause::kSync:
      return "an idle device after the host waited for it (synchronisation)";
    case Cause::kHost:
      return "an idle device because the host launches too late (host-bound)";
    case Cause::kLatency:
      return "gaps between kernels that were launched in time";
    case Cause::kDependency:
      return "launched work that waits for something else";
    case Cause::kNotRecorded:
      return "time in which capture was off";
    default:
      return NameOf(cause);
  }
}

std::string_view DescribeHostsTime(Cause cause) {
  switch (cause) {
    case Cause::kTransfer:
      return "in collectives";
    case Cause::kWait:
      return "waiting for other ranks";
    case Cause::kCheckpoint:
      return "saving checkpoints";
    case Cause::kCollection:
      return "collecting garbage";
    case Cause::kDataLoading:
      return "waiting for data";
    case Cause::kCapture:
      return "capturing CUDA graphs";
    case Cause::kOptimizer:
      return "in the optimizer";
    case Cause::kBackward:
      return "in the backward pass";
    case Cause::kForward:
      return "in the forward pass";
    default:
      return "in none of its known phases";
  }
}

}  // namespace ranktap::collector

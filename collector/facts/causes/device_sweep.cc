#include "collector/facts/causes/device_sweep.h"

#include <utility>

#include "collector/facts/collectives.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/framework/pass_nesting.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/sync_calls.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {
namespace {

std::vector<std::vector<Interval>> FindWaits(const Run& run) {
  std::vector<std::vector<Interval>> waits(run.traces.size());
  if (waits.size() < 2) return waits;
  for (const CollectiveRun& collective : MatchCollectives(run)) {
    if (collective.members.size() < 2) continue;
    const int64_t transfer = collective.shortest();
    for (const CollectiveMember& member : collective.members) {
      if (member.length() > transfer) {
        waits[member.trace].emplace_back(member.start, member.end - transfer);
      }
    }
  }
  ForEachTraceAtOnce(run, [&waits](uint32_t t) { waits[t] = Merged(std::move(waits[t])); });
  return waits;
}

}  // namespace

const std::vector<std::vector<Interval>>& WaitsForOtherRanks(const Run& run) {
  struct Waits {
    std::vector<std::vector<Interval>> by_trace;
  };
  return run.memo.Get<Waits>([&run] { return Waits{FindWaits(run)}; }).by_trace;
}

const Explained& PausesOfHost(const Trace& trace) {
  struct Pauses {
    Explained of;
  };
  return trace.memo
      .Get<Pauses>([&trace] {
        Explained pauses;
        pauses.Add(Cause::kCheckpoint, PhaseIntervals(trace, proto::kCheckpointPhase));
        pauses.Add(Cause::kCollection, PhaseIntervals(trace, proto::kCollectionPhase));
        pauses.Add(Cause::kDataLoading, DataLoading(trace));
        pauses.Add(Cause::kCapture, GraphCaptures(trace));
        return Pauses{std::move(pauses)};
      })
      .of;
}

void AddPasses(const Trace& trace, Explained* explained) {
  const std::vector<Interval>& in_closures = NestedPasses(trace).in_optimizers;
  const auto add_optimizer = [&](const std::vector<Interval>& steps) {
    explained->Add(Cause::kOptimizer, Difference(steps, in_closures));
  };
  add_optimizer(PhaseIntervals(trace, proto::kOptimizerPhase));
  explained->Add(Cause::kBackward, PhaseIntervals(trace, proto::kBackwardPhase));
  // As torch.profiler names them, where our own hooks were not.
  add_optimizer(OperatorsNamed(trace, "Optimizer.step#"));
  explained->Add(Cause::kBackward, OperatorsNamed(trace, "autograd::engine::evaluate_function"));
  explained->Add(Cause::kForward, ForwardPasses(trace));
}

Explained ExplainHost(const Trace& trace, const HostCommunication& communication) {
  Explained explained = PausesOfHost(trace);
  explained.Add(Cause::kWait, communication.waits);
  explained.Add(Cause::kTransfer, communication.transfers);
  AddPasses(trace, &explained);
  // Last: a host that computes until the message comes, or is taken, does not wait for it.
  explained.Add(Cause::kWait, Messages(trace, kReceive));
  explained.Add(Cause::kWait, Messages(trace, kSend));
  return explained;
}

std::vector<Interval> SyncIntervals(const Trace& trace) {
  std::vector<Interval> set;
  ForEachSyncCall(trace, [&](const ApiCalls& calls, size_t i) {
    set.emplace_back(calls.start[i], calls.end[i] + 1);
  });
  return Merged(std::move(set));
}

std::vector<Interval> NotRecordedIntervals(const Trace& trace) {
  std::vector<Interval> set;
  for (const Gap& gap : trace.gaps) {
    // Without what level full adds the device's work is there all the same.
    if (gap.source != "full") set.emplace_back(gap.start, gap.end);
  }
  return Merged(std::move(set));
}

}  // namespace ranktap::collector

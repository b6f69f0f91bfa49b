// The activity of a rank's host, as far as the program or the framework named it.
#pragma once

#include <string_view>
#include <vector>

#include "collector/facts/collectives.h"
#include "collector/facts/numbers/interval_union.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// When the host waited for a data loader: the agent's own phase, and ranges, operators and Python
// calls that are named like one ("DataLoader", "get_batch", "__next__", ...). Merged, by start.
std::vector<Interval> DataLoading(const Trace& trace);

// Rows of the agent's phases, by start. Checkpoints that another thread saves and batches that one
// fetches ahead are not among them: no step is longer for those. (The agent's steps name the
// training's threads; without steps every phase counts.)
std::vector<uint32_t> PhasesOfSteps(const Trace& trace);

// Those of this name (proto/framework_marks.h), merged, by start.
std::vector<Interval> PhaseIntervals(const Trace& trace, std::string_view phase);

// Operators and annotations whose names begin so, merged, by start.
std::vector<Interval> OperatorsNamed(const Trace& trace, std::string_view beginning);

// When the host captured CUDA graphs, which launches nothing, or made them ready to run: from the
// begin to the end of each capture on its thread, and each instantiation. Needs the calls
// themselves, which files of torch.profiler and nsys have. Merged, by start.
std::vector<Interval> GraphCaptures(const Trace& trace);

// The forward passes: outermost modules, merged, by start.
std::vector<Interval> ForwardPasses(const Trace& trace);

// gloo's messages, as PyTorch names them.
inline constexpr std::string_view kReceive = "gloo:recv", kSend = "gloo:send";

// From the call of a receive until the message is there, or of a send until the peer takes it.
// Merged, by start.
std::vector<Interval> Messages(const Trace& trace, std::string_view kind);

// The time of a rank's host in collectives of its own (gloo), by trace. A host that starts another
// collective was not held by the one before: of those that overlap only the time since the last of
// them began counts. Merged, by start.
struct HostCommunication {
  std::vector<Interval> waits;      // until the last member arrived
  std::vector<Interval> transfers;  // since then
};
std::vector<HostCommunication> CommunicationOfHosts(const Run& run);

}  // namespace ranktap::collector

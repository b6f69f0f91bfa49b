// A rank's work as a graph: host threads, devices and communicators, and what each waited for. The
// exports to Chakra and to pictures are made of it.
#pragma once

#include <vector>

#include "collector/export/export_options.h"
#include "collector/export/graph/graph_groups.h"
#include "collector/export/graph/work_node.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct WorkGraph {
  std::vector<WorkNode> nodes;
};

// The graph of what `options` keeps of the trace, on the trace's clock. Every dependency leads to a
// node that comes before in the order of time, so that the graph has no cycle:
// - of a host thread the node before it there, the operator around it, and, behind a pause of 10 us
//   or more, what ended last elsewhere in that pause;
// - of device work its launch, the work before it on its stream, work of other streams that was
//   recorded in an event and waited for, or that made a tensor it takes, and the collective before
//   it of its communicator;
// - of a host call that waits for a device the work that it waited for; its node begins when that
//   work had ended;
// - of gloo's work the operator that asked for it, and the one before of its communicator.
// `trace` is one of the run's.
WorkGraph BuildWorkGraph(const Run& run, const Trace& trace, const GraphGroups& groups,
                         const ExportOptions& options);

}  // namespace ranktap::collector

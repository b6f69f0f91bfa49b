// Finding and filling the nodes of a graph.
#pragma once

#include "driver_api.gen.h"
#include "tests/fakes/machine/graph.h"

namespace ranktap::standin {

// The executable's copy of a node of the graph it was made from.
GraphNode* NodeOfExec(CUgraphExec exec, CUgraphNode node);

}  // namespace ranktap::standin

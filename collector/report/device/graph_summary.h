#pragma once

#include "collector/report/analysis.h"

namespace ranktap::collector {

// What ran in CUDA graphs, and which line of the program put it there? Needs Trace::symbols for the
// source; at level kernels a graph is one row, since its nodes are not told apart.
Table TabulateGraphs(const Run& run);

}  // namespace ranktap::collector

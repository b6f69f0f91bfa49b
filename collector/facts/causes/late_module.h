// By which of its modules a late rank's step is longer than that of the others, and a long step
// than the other steps of its rank. Own times of a step:
//
//   rank 0   Net.embed 2 ms, Net.experts 10 ms   rank 1   2, 10   rank 2   2, 35
//
//   rank 2   Net.experts 25 ms over the median of the others
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall;

struct ModuleExcess {
  std::string name;
  int64_t ns = 0;  // per counted step, over the median of the other ranks; more than 0
};

// The largest first: of modules' own times in forwards (TimesOfModules), and of the nodes of the
// backward pass (TimesOfNodes). Of a trace against those of other ranks that have steps.
std::vector<ModuleExcess> ExcessOfModules(const Run& run, uint32_t trace);
std::vector<ModuleExcess> ExcessOfNodes(const Run& run, uint32_t trace);
// The same of kernels, by their recorded names.
std::vector<ModuleExcess> ExcessOfKernels(const Run& run, uint32_t trace);

// The module or node that has more than half of what a rank spends more on a cause; empty: none, or
// the cause lies in none.
std::string ModuleOfExcess(const Run& run, uint32_t trace, Cause cause, int64_t excess_ns);

// The module, node or kernel that has more than half of what a step of `longer` takes more than one
// of `shorter`; both are of the trace (OnlySteps). Empty: none has.
std::string PlaceOfLongSteps(const Trace& trace, const RankWaterfall& longer,
                             const RankWaterfall& shorter, int64_t excess_ns);

}  // namespace ranktap::collector

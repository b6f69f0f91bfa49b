// What takes most of a host's forward and backward passes. A forward of 22 ms, and its modules:
//
//   Net 0..22, Net.0 0..1, Net.1 1..21 (Router, pure Python), Net.2 21..22
//
//   own time: Net 0, Net.0 1, Net.1 20, Net.2 1   ->   Net.1
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall;

struct PassPlaces {
  std::string forward;   // the module with more than half of all modules' own time; maybe empty
  std::string backward;  // the node of autograd's graph with more than half: "SlowBackward"
};

// In the counted steps. Of the backward pass in those whose operators are recorded.
PassPlaces PlacesInPasses(const Trace& trace, const RankWaterfall& waterfall);

// Per counted step; names are the trace's.
using TimesByName = std::map<std::string_view, int64_t>;

// Each module's own time in forwards: the host's, or where the rank used a device that of the work
// that it launched itself.
TimesByName TimesOfModules(const Trace& trace, const RankWaterfall& waterfall);
// Each node of autograd's graph: the host's time, per step whose operators are recorded.
TimesByName TimesOfNodes(const Trace& trace, const RankWaterfall& waterfall);

}  // namespace ranktap::collector

// Finds the call of the program that each node of a CUDA graph came from. A graph is made once and
// launched often: the launch says nothing about where its kernels were written.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// One node as the program made it, mostly in a stream capture.
struct GraphNode {
  uint64_t id = 0;        // CUPTI's
  uint32_t api = 0;       // Dictionary::Api of the call that made it
  uint32_t stack = 0;     // Dictionary::Stack; 0: none was taken
  uint32_t range = 0;     // Dictionary::String: name of the innermost range around that call
  bool has_call = false;  // else the call was not recorded, and api and stack say nothing
  bool has_range = false;
};

// From resource events, calls and ranges: the nodes that were made, and their clones in
// instantiated graphs, sorted by id. Worked out once and kept in the trace's memo.
const std::vector<GraphNode>& GraphNodes(const Trace& trace);

// nullptr: not a node whose making was seen.
const GraphNode* FindGraphNode(const Trace& trace, uint64_t id);

}  // namespace ranktap::collector

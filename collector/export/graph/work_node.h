// A node of a work graph (work_graph.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

struct WorkNode {
  enum class Kind : uint8_t { kCompute, kCollective, kSend, kReceive };
  std::string name;
  Kind kind = Kind::kCompute;
  bool on_host = false;  // of a host thread; communication never is, also gloo's
  int64_t start = 0;     // ns after the run's first event
  // The host's own time: without what is inside it, and without waiting for devices.
  int64_t duration = 0;
  // Indices into WorkGraph::nodes, all smaller than this node's own; ascending.
  std::vector<uint32_t> control, data;
  int64_t flops = 0;
  uint64_t bytes = 0;  // that its tensors hold, or that it moves
  int64_t thread = 0, stream = -1;
  std::string_view phase;    // "forward", "backward", "optimizer", or nothing
  uint32_t op = UINT32_MAX;  // row of Operators: it, or what launched it
  // For communication. `group` is decimal; "0": all ranks.
  std::string collective, group;
  int64_t message = 0;  // bytes that go in
  int32_t source = -1, destination = -1, tag = 0;
};

}  // namespace ranktap::collector

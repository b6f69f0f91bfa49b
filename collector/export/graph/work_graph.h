// What a rank did as a graph: work of host threads, devices and communicators, and what each waited
// for. What the exports to Chakra and to pictures are made of.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "collector/export/export_options.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct GraphNode {
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

struct WorkGraph {
  std::vector<GraphNode> nodes;
};

// How communicators are numbered, the same on all ranks: torch's own decimal names stay.
class GraphGroups {
 public:
  explicit GraphGroups(const Run& run);
  // The number of a group, by the name that a description or CollectiveRun::group has.
  std::string NumberOf(const std::string& name, uint32_t size) const;
  // Members by number, of those that are known; never "0".
  const std::map<std::string, std::vector<uint32_t>>& members() const { return members_; }
  // Empty: not known.
  std::vector<uint32_t> RanksOf(const std::string& number) const;

 private:
  void Add(const std::string& name, uint32_t size);
  uint32_t world_ = 0;
  std::map<std::string, std::string> numbers_;
  std::map<std::string, std::vector<uint32_t>> members_;
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

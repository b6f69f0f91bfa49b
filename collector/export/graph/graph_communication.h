// The communication of a node of a work graph: with whom, how much, in which group.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/export/graph/graph_groups.h"
#include "collector/export/graph/host_collectives.h"
#include "collector/export/graph/host_messages.h"
#include "collector/export/graph/work_node.h"
#include "collector/facts/collectives.h"

namespace ranktap::collector {

// Fills the communication of nodes, in their order.
class GraphCommunication {
 public:
  GraphCommunication(const Run& run, const Trace& trace, const GraphGroups& groups);

  // An operator went by: of c10d's, what is asked for.
  void See(uint32_t op, uint32_t node);
  void OfWork(uint32_t work, WorkNode* node);
  // The node of the operator that asked for it; UINT32_MAX: not known.
  uint32_t OfHost(const HostCollective& comm, WorkNode* node);

 private:
  struct Asked {
    uint32_t op = kNone, node = UINT32_MAX;
  };
  void SetType(const std::string& type, WorkNode* node) const;
  void SetPeer(const Asked& asked, const Collective* described, WorkNode* node);

  const Trace& trace_;
  const GraphGroups& groups_;
  uint32_t rank_;
  std::map<uint32_t, HostMessage> asked_for_;       // by operator
  std::map<std::string, std::deque<Asked>> asked_;  // by type
  const std::vector<struct CollectiveRun>& runs_;
  const CollectiveOfWork& by_work_;
  std::map<std::pair<int32_t, int32_t>, int32_t> messages_;  // between two ranks, so far
};

}  // namespace ranktap::collector

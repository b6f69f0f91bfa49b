#include "collector/export/graph/graph_communication.h"

#include <algorithm>

#include "collector/facts/collective_types.h"
#include "collector/facts/collectives.h"
#include "collector/facts/device_timeline.h"

namespace ranktap::collector {
namespace {

// Types that simulators run; of the others, and of what has no peer, the duration is replayed.
bool IsSimulated(const std::string& type) {
  return type == "allreduce" || type == "allgather" || type == "alltoall" ||
         type == "reducescatter" || type == "broadcast";
}

}  // namespace

GraphCommunication::GraphCommunication(const Run& run, const Trace& trace,
                                       const GraphGroups& groups)
    : trace_(trace),
      groups_(groups),
      rank_(trace.info.rank.value_or(0)),
      asked_for_(ReadHostMessages(trace)),
      runs_(MatchCollectives(run)),
      by_work_(CollectivesByWork(run)[static_cast<size_t>(&trace - run.traces.data())]) {}

void GraphCommunication::See(uint32_t op, uint32_t node) {
  const std::string_view name = trace_.dictionary.String(trace_.operators.name[op]);
  if (!name.starts_with("c10d::")) return;
  if (const std::string type = CommunicationType(name); !type.empty()) {
    asked_[type].push_back({op, node});
  }
}

void GraphCommunication::SetType(const std::string& type, WorkNode* node) const {
  using Kind = WorkNode::Kind;
  node->collective = type;
  node->kind = type == "send"      ? Kind::kSend
               : type == "recv"    ? Kind::kReceive
               : IsSimulated(type) ? Kind::kCollective
                                   : Kind::kCompute;
}

void GraphCommunication::SetPeer(const Asked& asked, const Collective* described, WorkNode* node) {
  if (node->kind != WorkNode::Kind::kSend && node->kind != WorkNode::Kind::kReceive) return;
  const bool sends = node->kind == WorkNode::Kind::kSend;
  const std::vector<uint32_t> ranks = groups_.RanksOf(node->group);
  int32_t peer = -1, tag = -1;
  if (described != nullptr) peer = sends ? described->destination_rank : described->source_rank;
  if (const auto found = asked_for_.find(asked.op); peer < 0 && found != asked_for_.end()) {
    const auto of = static_cast<uint64_t>(found->second.peer);
    if (of < ranks.size()) peer = static_cast<int32_t>(ranks[of]);
    if (found->second.tag <= INT32_MAX) tag = static_cast<int32_t>(found->second.tag);
  }
  constexpr size_t kPair = 2;  // the other one
  if (peer < 0 && ranks.size() == kPair) {
    peer = static_cast<int32_t>(ranks[0] == rank_ ? ranks[1] : ranks[0]);
  }
  if (peer < 0) {
    node->kind = WorkNode::Kind::kCompute;
    return;
  }
  const auto self = static_cast<int32_t>(rank_);
  node->source = sends ? self : peer;
  node->destination = sends ? peer : self;
  const int32_t number = messages_[{node->source, node->destination}]++;
  node->tag = tag >= 0 ? tag : number;
}

void GraphCommunication::OfWork(uint32_t work, WorkNode* node) {
  const Collective* const described = DescriptionOf(trace_, DeviceTimeline(trace_)[work].row);
  const uint32_t matched = by_work_.empty() ? kNone : by_work_[work];
  const CollectiveRun* const run = matched == kNone ? nullptr : &runs_[matched];
  std::string type = described != nullptr ? CommunicationType(described->name) : "";
  if (type.empty() && run != nullptr) type = run->type();
  if (type.empty()) type = CommunicationType(node->name);
  if (type.empty()) return;
  const std::string name = described != nullptr && !described->group.empty() ? described->group
                           : run != nullptr                                  ? run->group()
                                                                             : "";
  node->group = groups_.NumberOf(name);
  node->message = described != nullptr ? MessageBytes(*described) : 0;
  SetType(type, node);
  Asked asked;
  if (auto& queue = asked_[type]; !queue.empty()) {
    asked = queue.front();
    queue.pop_front();
  }
  SetPeer(asked, described, node);
}

uint32_t GraphCommunication::OfHost(const HostCollective& comm, WorkNode* node) {
  node->group = comm.group.empty() ? "0" : groups_.NumberOf(comm.group);
  node->message = comm.bytes;
  SetType(comm.type, node);
  Asked asked;
  if (auto& queue = asked_[comm.type]; !queue.empty()) {
    asked = queue.front();
    queue.pop_front();
  }
  const auto message = asked_for_.find(asked.op);
  if (message != asked_for_.end() && node->message == 0) node->message = message->second.bytes;
  SetPeer(asked, nullptr, node);
  return asked.node;
}

}  // namespace ranktap::collector

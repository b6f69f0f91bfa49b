#include "collector/facts/message_peers.h"

#include <algorithm>
#include <map>
#include <vector>

#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/gloo_calls.h"
#include "collector/facts/host_activity.h"

namespace ranktap::collector {
namespace {

constexpr size_t kPeer = 2;  // of (tensors, group, peer, tag)

// The rank with this number in the only group of gloo's.
std::optional<uint32_t> RankInGroup(const Trace& trace, int64_t number) {
  const ProcessGroup* only = nullptr;
  for (const ProcessGroup& group : trace.process_groups) {
    if (!IsOfGloo(group)) continue;
    if (only != nullptr) return std::nullopt;
    only = &group;
  }
  if (only == nullptr || number < 0) return std::nullopt;
  if (only->ranks.empty()) {
    const bool is_of_all = trace.info.world_size && only->size == *trace.info.world_size;
    return is_of_all ? std::optional(static_cast<uint32_t>(number)) : std::nullopt;
  }
  const auto at = static_cast<size_t>(number);
  return at < only->ranks.size() ? std::optional(static_cast<uint32_t>(only->ranks[at]))
                                 : std::nullopt;
}

}  // namespace

std::optional<uint32_t> PeerOfMessages(const Trace& trace, std::string_view kind) {
  const std::string_view call = kind == kReceive ? "c10d::recv_" : "c10d::send";
  const Operators& ops = trace.operators;
  std::map<int64_t, int64_t> by_peer;  // -1: not recorded
  int64_t all = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (trace.dictionary.String(ops.name[i]) != kind) continue;
    uint32_t around = ops.parent[i];
    while (around != kNone && trace.dictionary.String(ops.name[around]) != call) {
      around = ops.parent[around];
    }
    if (around == kNone) continue;
    const OpInputs inputs("", trace.dictionary.String(ops.values.At(around)));
    const Dims peer = inputs.Integers(kPeer);
    by_peer[peer.size() == 1 ? peer[0] : -1] += ops.end[i] - ops.start[i];
    all += ops.end[i] - ops.start[i];
  }
  const auto most =
      std::ranges::max_element(by_peer, {}, [](const auto& entry) { return entry.second; });
  if (most == by_peer.end() || most->second * 2 <= all) return std::nullopt;
  return RankInGroup(trace, most->first);
}

}  // namespace ranktap::collector

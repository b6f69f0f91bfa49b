// Collectives of gloo in the words that Kineto has for NCCL's: name, elements, type, group.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "collector/trace/model.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// One of its backends is gloo: "gloo", or "cpu:gloo,cuda:nccl".
bool IsOfGloo(const ProcessGroup& group);
// In a trace of torch.profiler, whose events do not name the group.
bool HasSeveralProfiledGlooGroups(const Run& run);

// The group that a range of gloo is of (proto::kCollectivePayload); nullptr: not known. By its
// context, else the only group of gloo's that has this size.
const ProcessGroup* GroupOfGlooRange(const Trace& trace, uint32_t context, uint32_t size);

// The agent saw this context being made for a group that torch.distributed named.
bool IsNamedGlooContext(const Trace& trace, uint32_t context);

// "default_pg", or "group 3" of one without a description.
std::string GlooGroupName(const ProcessGroup& group);

// Of a capture; empty for traces of other tools. A call is known twice: as the agent's range, and
// while operators are recorded as PyTorch's operator around it, which alone says elements and type.
class GlooCalls {
 public:
  explicit GlooCalls(const Trace& trace);

  // nullptr: the row is none. An empty dtype: elements and type are not known.
  const Collective* OfRange(uint32_t row) const { return Find(by_range_, row); }
  const Collective* OfOperator(uint32_t op) const { return Find(by_operator_, op); }

 private:
  using Calls = std::unordered_map<uint32_t, Collective>;
  static const Collective* Find(const Calls& calls, uint32_t row) {
    const auto found = calls.find(row);
    return found == calls.end() ? nullptr : &found->second;
  }
  Calls by_range_, by_operator_;
};

}  // namespace ranktap::collector

// Point-to-point messages as c10d's operators were asked for them: c10d::send(tensors, group, int
// peer, int tag) and c10d::recv_, on whatever the group runs.
#pragma once

#include <cstdint>
#include <map>

#include "collector/trace/model.h"

namespace ranktap::collector {

struct HostMessage {
  int64_t peer = -1, tag = -1;  // the peer's number in the group; -1: not recorded
  int64_t bytes = 0;            // 0: not recorded
};

// By operator. For our own captures with `run --tensors=full`, and for others' files with the
// values of operators.
std::map<uint32_t, HostMessage> ReadHostMessages(const Trace& trace);

}  // namespace ranktap::collector

// With which rank a rank exchanges messages: c10d::recv_ and c10d::send name it where operators are
// recorded with these values (at level full, and in files with the values of operators).
//
//   c10d::recv_ (tensors, group, peer 1, tag 0)  10..12 us
//     gloo:recv                                   11..900 us   ->  889 us for rank 1
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "collector/trace/run.h"

namespace ranktap::collector {

// The rank of more than half of the time of such messages (host_activity.h: kReceive, kSend).
// nullopt: the operators do not tell it, or of several groups not whose number a peer is.
std::optional<uint32_t> PeerOfMessages(const Trace& trace, std::string_view kind);

}  // namespace ranktap::collector

// The other end of `ranktap status`, `start` and `stop`: finds collectors of this user and asks
// them. Blocks, for a bounded time.
#pragma once

#include <string>
#include <vector>

#include "collector/file/result.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

// Sockets at which a collector of this user, or of root, may listen: $RANKTAP_SOCKET, those of
// `ranktap collect`, and those that `ranktap run` makes for itself. Each path once.
std::vector<std::string> CandidateSockets();

// One request, one reply, which may take so long. The server must run as this user or as root.
Result<v1::ControlReply> AskCollector(const std::string& socket, const v1::ControlRequest& request,
                                      unsigned patience_seconds = 5);

}  // namespace ranktap::collector

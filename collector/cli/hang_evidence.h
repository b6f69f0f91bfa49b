// What a hang's directory gets beside the watch's own: the Flight Recorder's dump of each rank in
// which an agent is, and what the calls of all ranks say; NCCL's RAS; a reading of each GPU.
#pragma once

#include <vector>

#include "collector/hang/hang_watch.h"
#include "collector/ingest/collector.h"

namespace ranktap::collector {

// As HangWatchOptions::gather. `collector` outlives what it returns.
HangWatchOptions::AddRest GatherEvidence(const std::vector<const RankLook*>& looks,
                                         Collector* collector);

}  // namespace ranktap::collector

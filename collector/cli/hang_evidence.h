// What a hang's directory gets beside the watch's own: the Flight Recorder's dump of each rank in
// which an agent is, and what the calls of all ranks say; NCCL's RAS; a reading of each GPU.
#pragma once

#include <map>
#include <vector>

#include "collector/hang/hang_watch.h"
#include "collector/ingest/collector.h"

namespace ranktap::collector {

// Writes the dumps of these processes, whose ranks are given, and what they say together.
void AddFlights(const std::vector<FlightRecord>& flights, const std::map<pid_t, uint32_t>& ranks,
                HangDirectory* directory);

// As HangWatchOptions::gather. `collector` outlives what it returns.
HangWatchOptions::AddRest GatherEvidence(const std::vector<const RankLook*>& looks,
                                         Collector* collector);

}  // namespace ranktap::collector

// The host's waits for the device by what they wait for and where in the program they are. A part
// of the rules about copies and synchronisation.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collector/report/insights/rank_facts.h"

namespace ranktap::collector {

enum class WaitFor : uint8_t {
  kRead,      // a copy from the device to the host: .item(), .cpu(), nonzero
  kUpload,    // a copy to the device
  kAnything,  // cudaDeviceSynchronize and its like, where no copy comes before
  kPoll,      // cudaEventQuery: the host goes on
};

// What `wait` waits for: the copy that its own call launched, or the last one that its thread
// launched within 20 us before. `copy`: row of Trace::copies; kNone: none.
struct WaitReason {
  WaitFor what{};
  uint32_t copy = kNone;
};
// One for each of rank.waits().
std::vector<WaitReason> ReasonsOfWaits(const RankFacts& rank);

// The idle time of the device that began while the host was in waits of one kind, at one place.
struct WaitsAtPlace {
  std::string where;
  std::map<std::string, int64_t, std::less<>> calls;  // by name
  int64_t count = 0, host_ns = 0, idle_ns = 0;        // of counted steps
  std::vector<Interval> moments;                      // idle
  std::string_view MostCalled() const;
};

// By place, the most idle time first. It takes the waits in counted steps whose reason is `what`.
std::vector<WaitsAtPlace> WaitsByPlace(const RankFacts& rank, WaitFor what);

// The idle moments of counted steps that began in waits for which `picks` (by row of rank.waits()).
std::vector<Interval> IdleAfterWaits(const RankFacts& rank, const std::vector<bool>& picks);

}  // namespace ranktap::collector

// The calls of a job, found by what they are: the same number of the same group is the same call.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "collector/facts/hang/job_calls.h"

namespace ranktap::collector {

// Collectives that were coalesced share a number; `place` counts them.
struct CallKey {
  uint32_t group = 0;
  uint64_t number = 0;
  uint32_t place = 0;
  auto operator<=>(const CallKey&) const = default;
};

using Participants = std::vector<std::pair<uint32_t, const JobCall*>>;  // by rank

// One thread; must not outlive the job.
class CallTable {
 public:
  explicit CallTable(const JobCalls& job);

  // Collectives alone.
  const std::map<CallKey, Participants>& collectives() const { return collectives_; }
  // The rank entered this call, or a later one of the group.
  bool HasEntered(uint32_t rank, const CallKey& key) const;
  // The rank's collectives of a group, in order.
  std::vector<const JobCall*> CallsOf(uint32_t rank, uint32_t group) const;

 private:
  const JobCalls& job_;
  std::map<CallKey, Participants> collectives_;
  std::map<std::pair<uint32_t, uint32_t>, CallKey> last_;  // by rank and group
};

// Equal texts: the two may meet in one call. All-to-alls, and the root's side of a gather or a
// scatter, differ from rank to rank by design.
std::string SignatureOf(const JobCall& call);

}  // namespace ranktap::collector

// Who waits for whom, by the calls that are open.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "collector/facts/hang/call_table.h"

namespace ranktap::collector {

// A call that is open, and the ranks that it waits for.
struct OpenWait {
  const JobCall* call = nullptr;
  uint32_t rank = 0;
  std::vector<uint32_t> awaited;  // empty: every rank that is known to take part has come
};

// One thread; must not outlive the job.
class WaitGraph {
 public:
  WaitGraph(const JobCalls& job, const CallTable& table);

  const std::vector<OpenWait>& waits() const { return waits_; }
  // The waits of one rank, and those for it.
  std::vector<const OpenWait*> Of(uint32_t rank) const;
  std::vector<const OpenWait*> For(uint32_t rank) const;
  bool Waits(uint32_t rank) const;
  // Ranks that are waited for and wait for nobody.
  std::vector<uint32_t> Ends() const;
  // All that wait for one of these, or for one that does.
  std::set<uint32_t> WaitFor(const std::vector<uint32_t>& ranks) const;
  // Ranks that wait for each other in turn, of those not in `explained`: each waits for the next.
  std::vector<uint32_t> Circle(const std::set<uint32_t>& explained) const;
  // A call of this rank waits for the other; nullptr: none does.
  const OpenWait* Between(uint32_t rank, uint32_t awaited) const;

 private:
  void AddCollectives(const JobCalls& job, const CallTable& table);
  void AddMessages(const JobCalls& job);

  std::vector<OpenWait> waits_;
  std::multimap<uint32_t, size_t> of_, for_;  // by rank, index into waits_
};

}  // namespace ranktap::collector

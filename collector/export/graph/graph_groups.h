// The communicators of a run, as its work graphs number them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collector/trace/run.h"

namespace ranktap::collector {

// How communicators are numbered, the same on all ranks: torch's own decimal names stay.
class GraphGroups {
 public:
  explicit GraphGroups(const Run& run);
  // The number of a group, by the name that a description or CollectiveRun::group has.
  std::string NumberOf(const std::string& name) const;
  using Members = std::map<std::string, std::vector<uint32_t>>;
  // By number, of those that are known. The group of all ranks is "0".
  Members WithWorld() const;
  // For ASTRA-sim, which aborts at a group 0 in a file of groups, and takes the pg_name "0" for all
  // ranks without looking there: they have a number of their own, unless another group is of all.
  Members ForSimulators() const;
  // Empty: not known.
  std::vector<uint32_t> RanksOf(const std::string& number) const;

 private:
  void Add(const std::string& name, uint32_t size);
  uint32_t world_ = 0;
  std::map<std::string, std::string> numbers_;
  uint32_t next_ = 1;  // a number that no group has
  Members members_;    // without "0"
};

}  // namespace ranktap::collector

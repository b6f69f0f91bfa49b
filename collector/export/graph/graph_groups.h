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
  // Members by number, of those that are known; never "0".
  const std::map<std::string, std::vector<uint32_t>>& members() const { return members_; }
  // Empty: not known.
  std::vector<uint32_t> RanksOf(const std::string& number) const;

 private:
  void Add(const std::string& name, uint32_t size);
  uint32_t world_ = 0;
  std::map<std::string, std::string> numbers_;
  std::map<std::string, std::vector<uint32_t>> members_;
};

}  // namespace ranktap::collector

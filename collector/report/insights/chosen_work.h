// Device work of counted steps that a rule objects to.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/facts/device_timeline.h"
#include "collector/report/insights/insight.h"
#include "collector/report/insights/rank_facts.h"

namespace ranktap::collector {

class ChosenWork {
 public:
  explicit ChosenWork(const RankFacts& rank) : rank_(rank) {}
  // Work outside of counted steps is left out.
  void Add(const DeviceSpan& span);
  void Add(const ChosenWork& other);

  int64_t count() const { return static_cast<int64_t>(spans_.size()); }
  int64_t per_step() const { return rank_.PerStep(total_ns_); }
  bool IsWorth(double share) const { return rank_.IsWorth(per_step(), share); }
  // The place, and the kernel, that takes most of it; empty: none is known.
  std::string Place() const;
  std::string KernelName() const;
  uint32_t Device() const;  // kNone: several
  // The longest of them; there is one.
  const DeviceSpan& Longest() const;
  // "taking 1.20 ms of each 10.0 ms step (12.0 %)"
  std::string Taking() const;
  // `share` of it, where it runs and nothing else does.
  Saving ToSave(double share) const;
  // One with all of the above but its sentence.
  Insight AsInsight(std::string finding, double share) const;

 private:
  const RankFacts& rank_;
  std::vector<DeviceSpan> spans_;
  int64_t total_ns_ = 0;
};

}  // namespace ranktap::collector

// Which rank has just taken much longer for a step than it does. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

class SlowSteps {
 public:
  // `times`: how many times the usual step is slow.
  explicit SlowSteps(double times) : times_(times) {}

  // A sentence of the slowest step of this process that ended since the last call; empty: none was
  // slow. A step is slow that took so many times the median of those before it, and 200 ms more.
  std::string Look(const v1::ProcessStatus& process);

 private:
  double times_;
  std::map<uint64_t, uint64_t> seen_;  // steps, by session
};

}  // namespace ranktap::collector

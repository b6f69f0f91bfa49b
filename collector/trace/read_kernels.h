// A kernel whose counters another profiler read in a run of its own.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ranktap::collector {

struct ReadKernel {
  std::string name;  // demangled, or the function's alone
  // 0: the file does not say.
  std::array<uint32_t, 3> grid{}, block{};
  std::vector<std::pair<std::string, double>> readings;  // in B, ns, % or counts
};

}  // namespace ranktap::collector

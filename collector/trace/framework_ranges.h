// The ranges that the agent's hooks in the framework make, by the domains reserved for them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

inline constexpr std::string_view kStepDomain = "ranktap.step";      // payload: the step's number
inline constexpr std::string_view kModuleDomain = "ranktap.module";  // name: Root.path.of.module
inline constexpr std::string_view kPhaseDomain = "ranktap.phase";    // optimizer, backward, ...
inline constexpr std::string_view kOperatorDomain = "ranktap.op";
inline constexpr std::string_view kCommDomain = "ranktap.comm";  // payload: kCollectivePayload
inline constexpr std::string_view kMemoryDomain = "ranktap.memory";

// Rows of trace.ranges in this domain, by start.
inline std::vector<uint32_t> RangesIn(const Trace& trace, std::string_view domain) {
  std::vector<uint32_t> rows;
  for (uint32_t row = 0; row < trace.ranges.size(); ++row) {
    if (trace.dictionary.Domain(trace.ranges.domain[row]) == domain) rows.push_back(row);
  }
  return rows;
}

}  // namespace ranktap::collector

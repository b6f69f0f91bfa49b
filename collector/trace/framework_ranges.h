// The ranges that the agent's hooks in the framework make, by the domains reserved for them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"
#include "proto/framework_marks.h"

namespace ranktap::collector {

using proto::kCommDomain;
using proto::kMemoryDomain;
using proto::kModuleDomain;
using proto::kOperatorDomain;
using proto::kPhaseDomain;
using proto::kStepDomain;

// Rows of trace.ranges in this domain, by start.
inline std::vector<uint32_t> RangesIn(const Trace& trace, std::string_view domain) {
  std::vector<uint32_t> rows;
  if (!trace.dictionary.HasDomain(domain)) return rows;
  const Column<uint16_t>& domains = trace.ranges.domain;
  bool is_in = false;
  for (uint32_t row = 0; row < trace.ranges.size(); ++row) {
    if (row == 0 || domains[row] != domains[row - 1]) {
      is_in = trace.dictionary.Domain(domains[row]) == domain;
    }
    if (is_in) rows.push_back(row);
  }
  return rows;
}

// What the agent's hooks tell the reader of the trace in marks: tables of texts, no moment of the
// program. An allocation that failed is one.
inline bool IsBookkeeping(const Trace& trace, const Ranges& ranges, size_t row) {
  return static_cast<RangeKind>(ranges.kind[row]) == RangeKind::kMark &&
         trace.dictionary.Domain(ranges.domain[row]).starts_with("ranktap.") &&
         trace.dictionary.String(ranges.name[row]) != proto::kOutOfMemoryMark;
}

}  // namespace ranktap::collector

// Columns that say something else, or more, in one report than their name does in the others.
#pragma once

#include <span>
#include <string_view>

namespace ranktap::collector {

struct ColumnMeaning {
  std::string_view column, says;
};

// "steps.total_ns", sorted.
std::span<const ColumnMeaning> ReportColumnMeanings();

}  // namespace ranktap::collector

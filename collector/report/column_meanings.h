// What each column of each report says: for --help NAME and docs/commands/report-columns.md.
#pragma once

#include <string_view>

namespace ranktap::collector {

// Without its unit, which the column knows. Empty: nobody has written it down.
std::string_view MeaningOf(std::string_view report, std::string_view column);

}  // namespace ranktap::collector

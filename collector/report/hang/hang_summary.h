// Which rank keeps the others waiting, by the calls that ranks entered (facts/hang/find_hang.h).
#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The likeliest cause as the title, and as the first row; a row for each finding.
Table TabulateHang(const Run& run, const ReportOptions& options = {});
// A row for each rank.
Table TabulateHangByRank(const Run& run, const ReportOptions& options = {});

}  // namespace ranktap::collector

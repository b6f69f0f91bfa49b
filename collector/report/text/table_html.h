// A table as a section of an HTML page that needs nothing but itself.
#pragma once

#include <cstddef>
#include <string>

#include "collector/report/table.h"
#include "collector/report/text/cell_text.h"

namespace ranktap::collector {

// `limit` 0: all rows. Each table brings the style it needs, so that a page is any number of them,
// one after another.
std::string FormatHtml(const Table& table, size_t limit, TimeUnit time_unit = TimeUnit::kAuto);

}  // namespace ranktap::collector

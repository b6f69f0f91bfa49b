// Tables as the page holds them: by column, cut to what it can show. A part of page.h.
#pragma once

#include <string>
#include <vector>

#include "collector/file/json.h"
#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Commands in them name `inputs`, the paths that were opened.
// {name: {"title", "columns": [{"name", "unit", "values"}], "rows": of the whole table, "notes"}}
Json PageTables(const Run& run, const ReportOptions& options,
                const std::vector<std::string>& inputs);
Json PageTable(const Table& table);

}  // namespace ranktap::collector

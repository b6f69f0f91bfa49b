// Tables as the page holds them: by column, cut to what it can show. A part of page.h.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// {name: {"title", "columns": [{"name", "unit", "values"}], "rows": of the whole table, "notes"}}
nlohmann::json PageTables(const Run& run, const ReportOptions& options);
nlohmann::json PageTable(const Table& table);

}  // namespace ranktap::collector

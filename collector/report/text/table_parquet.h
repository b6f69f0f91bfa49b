// A table as a Parquet file of a data set (collector/parquet/data_set.h).
#pragma once

#include <optional>
#include <string>

#include "collector/file/result.h"
#include "collector/parquet/data_set.h"
#include "collector/report/table.h"

namespace ranktap::collector {

// "critical-path" -> "report_critical_path": apart from the exported tables, of which some have the
// name of a report.
std::string DataSetTableName(std::string_view report);

// The table has a column at least. A column of numbers is DOUBLE where it is a share or where one
// of them is not a whole number.
std::optional<Failure> WriteParquet(const Table& table, DataSet* set);

}  // namespace ranktap::collector

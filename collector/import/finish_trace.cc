#include "collector/import/finish_trace.h"

#include <algorithm>

#include "collector/trace/launch_join.h"
#include "collector/trace/operator_join.h"
#include "collector/trace/table_columns.h"

namespace ranktap::collector {

void FinishTrace(Trace* trace) {
  ForEachTable(*trace, [](auto& table) { SortTable(table); });
  SortNested(trace->operators);
  SortNested(trace->python_calls);
  JoinLaunches(trace);
  NestOperators(trace);
  JoinOperators(trace);
  bool any = false;
  ForEachTable(*trace, [&](auto& table) {
    for (size_t i = 0; i < table.size(); ++i) {
      trace->first_ns = any ? std::min(trace->first_ns, table.start[i]) : table.start[i];
      trace->last_ns = any ? std::max(trace->last_ns, table.end[i]) : table.end[i];
      any = true;
    }
    ForEachColumnOf(table, [](auto& column) { column.ShrinkToFit(); });
  });
}

}  // namespace ranktap::collector


#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

std::string ReasonName(v1::Gap::Reason reason) {
  switch (reason) {
    case v1::Gap::REASON_LEVEL:
      return "level";
    case v1::Gap::REASON_OTHER_PROFILER:
      return "another profiler";
    case v1::Gap::REASON_FORK:
      return "fork";
    case v1::Gap::REASON_ERROR:
      return "internal error";
    case v1::Gap::REASON_EXIT:
      return "exit";
    case v1::Gap::REASON_BUDGET:
      return "overhead budget";
    default:
      return "unknown";
  }
}

}  // namespace

Table TabulateGaps(const Run& run, const ReportOptions&) {
  Table table{.name = "gaps",
              .title = "Times without capture, by rank",
              .columns = {{"rank", Unit::kCount},
                          {"file", Unit::kText, Shown::kDetail},
                          {"source", Unit::kText},
                          {"reason", Unit::kText},
                          {"start_ns", Unit::kNs},
                          {"duration_ns", Unit::kNs},
                          {"detail", Unit::kText, Shown::kDetail}}};
  for (const Trace& trace : run.traces) {
    for (const Gap& gap : trace.gaps) {
      table.rows.push_back({trace.info.rank ? Cell(static_cast<int64_t>(*trace.info.rank)) : Cell(),
                            trace.info.file, gap.source.empty() ? std::string("all") : gap.source,
                            ReasonName(gap.reason), gap.start - trace.first_ns, gap.end - gap.start,
                            gap.detail});
    }
  }
  if (table.rows.empty()) table.notes.push_back("capture was never off");
  return table;
}

}  // namespace ranktap::collector

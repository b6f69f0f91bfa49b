#include "collector/report/host/api_summary.h"
#include "collector/report/capture/origin_advice.h"
#include "collector/report/reports.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/duration_columns.h"

namespace ranktap::collector {
namespace {

// cudaErrorNotReady and CUDA_ERROR_NOT_READY.
constexpr int32_t kNotReady = 600;

struct ApiTime {
  DurationDistribution time;
  int64_t errors = 0;
};

void Count(const ApiCalls& calls, std::vector<ApiTime>* by_id) {
  for (size_t i = 0; i < calls.size(); ++i) {
    ApiTime& counted = (*by_id)[std::min<size_t>(calls.api[i], by_id->size() - 1)];
    counted.time.Add(calls.end[i] - calls.start[i]);
    const int32_t status = calls.status.At(i);
    counted.errors += status != 0 && status != kNotReady ? 1 : 0;
  }
}

std::string DomainName(proto::ApiDomain domain) {
  switch (domain) {
    case proto::ApiDomain::kRuntime:
      return "runtime";
    case proto::ApiDomain::kDriver:
      return "driver";
  }
  return "unknown";
}

const ColumnsOf<ApiRow> kApiColumns = JoinedColumns<ApiRow>(
    {{
         {"name", Unit::kText, "The CUDA function.", [](const ApiRow& row) { return row.name; }},
         {"domain", Unit::kText, "The interface that it belongs to: runtime or driver.",
          [](const ApiRow& row) { return row.domain; }, Shown::kDetail},
         {"calls", Unit::kCount, "The number of calls.",
          [](const ApiRow& row) { return row.time.count; }},
         {"total_ns", Unit::kNs, "The durations of the calls, added up.",
          [](const ApiRow& row) { return row.time.total_ns; }},
         {"share_percent", Unit::kPercent, "The share of the time of all calls.",
          [](const ApiRow& row) { return Percent(row.time.total_ns, row.all_ns); }, Shown::kDetail},
     },
     DurationColumns<ApiRow>(
         "", "calls", [](const ApiRow& row) -> const DurationDistribution& { return row.time; }),
     {
         {"errors", Unit::kCount, "The calls that failed.",
          [](const ApiRow& row) { return row.errors; }, Shown::kDetail},
     }});

}  // namespace

std::vector<ApiRow> SummarizeApis(const std::vector<Trace>& traces) {
  std::map<std::pair<std::string, std::string>, ApiRow> rows;
  for (const Trace& trace : traces) {
    std::vector<ApiTime> by_id(trace.dictionary.apis() + 1);
    Count(trace.api_calls, &by_id);
    Count(trace.event_calls, &by_id);
    for (uint32_t id = 0; id < by_id.size(); ++id) {
      if (by_id[id].time.count == 0) continue;
      const ApiFunction& api = trace.dictionary.Api(id);
      const std::string name = api.name.empty() ? "(name missing)" : api.name;
      ApiRow& row = rows[{name, DomainName(api.domain)}];
      row.name = name;
      row.domain = DomainName(api.domain);
      row.time.Add(std::move(by_id[id].time));
      row.errors += by_id[id].errors;
    }
  }
  int64_t all_ns = 0;
  for (const auto& [key, row] : rows) all_ns += row.time.total_ns;
  std::vector<ApiRow> sorted;
  for (auto& [key, row] : rows) {
    row.all_ns = all_ns;
    sorted.push_back(std::move(row));
  }
  std::sort(sorted.begin(), sorted.end(), [](const ApiRow& a, const ApiRow& b) {
    return std::tie(b.time.total_ns, a.name, a.domain) <
           std::tie(a.time.total_ns, b.name, b.domain);
  });
  return sorted;
}

Table TabulateApis(const Run& run, const ReportOptions&) {
  Table table =
      TableOf("CUDA API calls, all ranks and threads", kApiColumns, SummarizeApis(run.traces));
  if (table.rows.empty()) {
    table.notes.push_back(
        AdviceFor(run, {.ours = "no CUDA call was made while capture was at level kernels",
                        .profiler = "the file has no CUDA call; torch.profiler records them with "
                                    "ProfilerActivity.CUDA",
                        .other = "the file has no CUDA call"}));
  }
  return table;
}

}  // namespace ranktap::collector

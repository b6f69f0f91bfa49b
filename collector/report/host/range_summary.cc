#include "collector/report/host/range_summary.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "collector/facts/launched_work.h"
#include "collector/facts/range_instances.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/duration_columns.h"
#include "collector/report/host/hta_annotations.h"

namespace ranktap::collector {
namespace {

using RangeKey = std::pair<std::string, std::string>;

void Add(RangeRow&& counted, RangeRow* row) {
  row->time.Add(std::move(counted.time));
  row->gpu_ns += counted.gpu_ns;
  row->self_ns += counted.self_ns;
  row->unfinished += counted.unfinished;
}

void AddTrace(const Trace& trace, std::map<RangeKey, RangeRow>* rows) {
  const LaunchedWork work(trace);
  std::unordered_map<uint64_t, RangeRow> by_id;  // by name and domain
  std::pair<const uint64_t, RangeRow>* last = nullptr;
  for (const RangeInstance& range : RangeInstances(trace)) {
    const uint64_t id = uint64_t{range.name} << 32 | range.domain;
    if (last == nullptr || last->first != id) last = &*by_id.try_emplace(id).first;
    RangeRow& row = last->second;
    row.time.Add(range.end - range.start);
    row.self_ns += range.self_ns();
    row.unfinished += range.unfinished;
    row.gpu_ns += work.Between(range.writer, range.start, range.end);
  }
  std::map<RangeKey, RangeRow> of_trace;
  for (auto& [id, counted] : by_id) {
    Add(std::move(counted),
        &of_trace[{std::string(trace.dictionary.String(static_cast<uint32_t>(id >> 32))),
                   std::string(DomainName(trace, static_cast<uint32_t>(id)))}]);
  }
  for (auto& [key, counted] : of_trace) {
    RangeRow& row = (*rows)[key];
    std::tie(row.name, row.domain) = key;
    Add(std::move(counted), &row);
    ++row.ranks;
  }
}

const ColumnsOf<RangeRow> kRangeColumns = JoinedColumns<RangeRow>(
    {{
         {"name", Unit::kText, "The name of the range.",
          [](const RangeRow& row) { return row.name; }},
         {"domain", Unit::kText, "The range's NVTX domain.",
          [](const RangeRow& row) { return row.domain; }, Shown::kDetail},
         {"calls", Unit::kCount, "How often a thread entered the range.",
          [](const RangeRow& row) { return row.time.count; }},
         {"total_ns", Unit::kNs, "The time of the range on the host, added up.",
          [](const RangeRow& row) { return row.time.total_ns; }},
         {"self_ns", Unit::kNs, "The part of that time outside of the ranges within it.",
          [](const RangeRow& row) { return row.self_ns; }, Shown::kDetail},
         {"gpu_ns", Unit::kNs, "The device work that the range launched, added up.",
          [](const RangeRow& row) { return row.gpu_ns; }},
         {"share_percent", Unit::kPercent,
          "The share of the time of all ranges, which may lie in each other.",
          [](const RangeRow& row) { return Percent(row.time.total_ns, row.all_ns); },
          Shown::kDetail},
     },
     DurationColumns<RangeRow>(
         "", "ranges", [](const RangeRow& row) -> const DurationDistribution& { return row.time; }),
     {
         {"ranks", Unit::kCount, "The number of ranks that entered it.",
          [](const RangeRow& row) { return row.ranks; }, Shown::kDetail},
         {"unfinished", Unit::kCount, "The ranges that had not ended when the trace ended.",
          [](const RangeRow& row) { return row.unfinished; }, Shown::kDetail},
     }});

}  // namespace

std::vector<RangeRow> SummarizeRanges(const std::vector<Trace>& traces) {
  std::map<RangeKey, RangeRow> rows;
  for (const Trace& trace : traces) AddTrace(trace, &rows);
  int64_t all_ns = 0;
  for (const auto& [key, row] : rows) all_ns += row.time.total_ns;
  std::vector<RangeRow> sorted;
  for (auto& [key, row] : rows) {
    row.all_ns = all_ns;
    sorted.push_back(std::move(row));
  }
  std::sort(sorted.begin(), sorted.end(), [](const RangeRow& a, const RangeRow& b) {
    return std::tie(b.time.total_ns, a.name, a.domain) <
           std::tie(a.time.total_ns, b.name, b.domain);
  });
  return sorted;
}

Table TabulateRanges(const Run& run, const ReportOptions& options) {
  if (options.hta_compat) return TabulateHtaAnnotations(run);
  Table table = TableOf("NVTX ranges, all ranks", kRangeColumns, SummarizeRanges(run.traces));
  uint64_t unmatched = 0;
  for (const Trace& trace : run.traces) unmatched += trace.unmatched_pops;
  if (table.rows.empty())
    table.notes.push_back("the program used no NVTX range and no record_function");
  if (unmatched > 0) {
    table.notes.push_back(fmt::format(
        "{} ranges ended that had begun before capture did; they are not counted", unmatched));
  }
  return table;
}

}  // namespace ranktap::collector

#include "collector/report/host/range_summary.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "collector/analysis/launched_work.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/host/hta_annotations.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

using Key = std::pair<std::string, std::string>;

constexpr std::string_view kAnnotations = proto::kLabelDomain;  // in place of a domain of NVTX

// record_function and ProfilerStep#N, which are the framework's ranges.
void AddAnnotations(const Trace& trace, const LaunchedWork& work, std::map<Key, RangeRow>* rows) {
  const Operators& ops = trace.operators;
  for (size_t i = 0; i < ops.size(); ++i) {
    if (static_cast<OperatorKind>(ops.kind[i]) != OperatorKind::kAnnotation) continue;
    RangeRow& row =
        (*rows)[{std::string(trace.dictionary.String(ops.name[i])), std::string(kAnnotations)}];
    row.time.Add(ops.end[i] - ops.start[i]);
    row.gpu_ns += work.Between(ops.writer[i], ops.start[i], ops.end[i]);
  }
}

void AddTrace(const Trace& trace, std::map<Key, RangeRow>* rows) {
  const LaunchedWork work(trace);
  std::unordered_map<uint64_t, RangeRow> by_id;  // by name and domain
  const Ranges& ranges = trace.ranges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    // After the last optimizer's step comes no step: that range is open until the program ends.
    if (ranges.unfinished.At(i) != 0 && trace.dictionary.Domain(ranges.domain[i]) == kStepDomain) {
      continue;
    }
    RangeRow& row = by_id[uint64_t{ranges.name[i]} << 16 | ranges.domain[i]];
    row.time.Add(ranges.end[i] - ranges.start[i]);
    row.unfinished += ranges.unfinished.At(i);
    row.gpu_ns += work.Between(ranges.writer[i], ranges.start[i], ranges.end[i]);
  }
  std::map<Key, RangeRow> of_trace;
  AddAnnotations(trace, work, &of_trace);
  for (const auto& [id, counted] : by_id) {
    const Key key{trace.dictionary.String(static_cast<uint32_t>(id >> 16)),
                  trace.dictionary.Domain(static_cast<uint32_t>(id & 0xffff))};
    RangeRow& row = of_trace[key];
    row.time.Add(counted.time);
    row.unfinished += counted.unfinished;
    row.gpu_ns += counted.gpu_ns;
  }
  for (const auto& [key, counted] : of_trace) {
    RangeRow& row = (*rows)[key];
    std::tie(row.name, row.domain) = key;
    row.time.Add(counted.time);
    row.unfinished += counted.unfinished;
    row.gpu_ns += counted.gpu_ns;
    ++row.ranks;
  }
}

const ColumnsOf<RangeRow> kColumns = {
    {"name", Unit::kText, [](const RangeRow& row) { return row.name; }},
    {"domain", Unit::kText, [](const RangeRow& row) { return row.domain; }, Shown::kDetail},
    {"calls", Unit::kCount, [](const RangeRow& row) { return row.time.count; }},
    {"total_ns", Unit::kNs, [](const RangeRow& row) { return row.time.total_ns; }},
    {"gpu_ns", Unit::kNs, [](const RangeRow& row) { return row.gpu_ns; }},
    {"share_percent", Unit::kPercent,
     [](const RangeRow& row) { return Percent(row.time.total_ns, row.all_ns); }, Shown::kDetail},
    {"mean_ns", Unit::kNs, [](const RangeRow& row) { return row.time.mean_ns(); }},
    {"median_ns", Unit::kNs, [](const RangeRow& row) { return row.time.median_ns(); },
     Shown::kDetail},
    {"p95_ns", Unit::kNs, [](const RangeRow& row) { return row.time.p95_ns(); }, Shown::kDetail},
    {"stddev_ns", Unit::kNs, [](const RangeRow& row) { return row.time.stddev_ns(); },
     Shown::kDetail},
    {"min_ns", Unit::kNs, [](const RangeRow& row) { return row.time.shortest_ns(); },
     Shown::kDetail},
    {"max_ns", Unit::kNs, [](const RangeRow& row) { return row.time.max_ns; }, Shown::kDetail},
    {"ranks", Unit::kCount, [](const RangeRow& row) { return row.ranks; }, Shown::kDetail},
    {"unfinished", Unit::kCount, [](const RangeRow& row) { return row.unfinished; },
     Shown::kDetail},
};

}  // namespace

std::vector<RangeRow> SummarizeRanges(const std::vector<Trace>& traces) {
  std::map<Key, RangeRow> rows;
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
  Table table = TableOf("NVTX ranges, all ranks", kColumns, SummarizeRanges(run.traces));
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

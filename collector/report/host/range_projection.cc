// Finds where the work of ranges ran on the devices, by name and one by one.
#include <algorithm>
#include <map>
#include <tuple>

#include "collector/facts/numbers/duration_distribution.h"
#include "collector/facts/range_instances.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/duration_columns.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

using RangeProjectionKey = std::pair<std::string, std::string>;

struct RangeProjectionRow {
  std::string name, domain;
  DurationDistribution projected;  // of those that launched anything
  int64_t calls = 0, host_ns = 0, gpu_ns = 0, operations = 0, ranks = 0;
  void Add(const RangeInstance& range, const WorkExtent& work) {
    ++calls;
    host_ns += range.end - range.start;
    if (work.operations == 0) return;
    projected.Add(work.projected_ns());
    gpu_ns += work.total_ns;
    operations += work.operations;
  }
  void Add(const RangeProjectionRow& other) {
    projected.Add(other.projected);
    calls += other.calls;
    host_ns += other.host_ns;
    gpu_ns += other.gpu_ns;
    operations += other.operations;
    ++ranks;
  }
};

void AddTrace(const Trace& trace, std::map<RangeProjectionKey, RangeProjectionRow>* rows) {
  const ProjectedWork work(trace);
  std::map<std::pair<uint32_t, uint32_t>, RangeProjectionRow> by_id;
  for (const RangeInstance& range : RangeInstances(trace)) {
    by_id[{range.name, range.domain}].Add(range, work.Of(range));
  }
  for (const auto& [id, counted] : by_id) {
    if (counted.operations == 0) continue;
    const RangeProjectionKey key{trace.dictionary.String(id.first), DomainName(trace, id.second)};
    RangeProjectionRow& row = (*rows)[key];
    std::tie(row.name, row.domain) = key;
    row.Add(counted);
  }
}

const ColumnsOf<RangeProjectionRow> kRangeProjectionColumns = JoinedColumns<RangeProjectionRow>(
    {{
         {"name", Unit::kText, "The name of the range.",
          [](const RangeProjectionRow& row) { return row.name; }},
         {"domain", Unit::kText, "The range's NVTX domain.",
          [](const RangeProjectionRow& row) { return row.domain; }, Shown::kDetail},
         {"calls", Unit::kCount, "How often a thread entered the range.",
          [](const RangeProjectionRow& row) { return row.calls; }},
         {"projected_calls", Unit::kCount, "How many of these calls launched any work.",
          [](const RangeProjectionRow& row) { return row.projected.count; }, Shown::kDetail},
         {"projected_ns", Unit::kNs,
          "The time from the first work that a call launched to the end of the last, added up.",
          [](const RangeProjectionRow& row) { return row.projected.total_ns; }},
         {"gpu_ns", Unit::kNs, "The device work that the range launched, added up.",
          [](const RangeProjectionRow& row) { return row.gpu_ns; }},
         {"host_ns", Unit::kNs, "The time of the range on the host, added up.",
          [](const RangeProjectionRow& row) { return row.host_ns; }},
         {"gpu_ops", Unit::kCount, "The kernels, copies and memsets that the range launched.",
          [](const RangeProjectionRow& row) { return row.operations; }},
     },
     DurationColumns<RangeProjectionRow>(
         "", "projections",
         [](const RangeProjectionRow& row) -> const DurationDistribution& {
           return row.projected;
         }),
     {
         {"ranks", Unit::kCount, "The number of ranks that launched work in it.",
          [](const RangeProjectionRow& row) { return row.ranks; }, Shown::kDetail},
     }});

struct One {
  const Trace* trace;
  const RangeInstance* range;
  int64_t id = 0, parent_id = 0;  // from 1 within a trace
  WorkExtent work;
};

Cell OfWork(const One& one, int64_t value) {
  return one.work.operations == 0 ? Cell() : Cell(value);
}

const ColumnsOf<One> kEachColumns = {
    {"rank", Unit::kCount, kRankMeaning, [](const One& one) { return RankCell(*one.trace); }},
    {"thread", Unit::kCount, "The id of the thread that entered the range.",
     [](const One& one) {
       const auto& writers = one.trace->writers;
       return one.range->writer < writers.size() ? Cell(int64_t{writers[one.range->writer].thread})
                                                 : Cell();
     },
     Shown::kDetail},
    {"name", Unit::kText, "The name of the range.",
     [](const One& one) { return std::string(one.trace->dictionary.String(one.range->name)); }},
    {"domain", Unit::kText, "The range's NVTX domain.",
     [](const One& one) { return std::string(DomainName(*one.trace, one.range->domain)); },
     Shown::kDetail},
    {"start_ns", Unit::kNs, "When the range began, counted from the rank's first event.",
     [](const One& one) { return one.range->start - one.trace->first_ns; }},
    {"total_ns", Unit::kNs, "How long the range was open.",
     [](const One& one) { return one.range->end - one.range->start; }},
    {"self_ns", Unit::kNs, "The part of that time outside of the ranges within it.",
     [](const One& one) { return one.range->self_ns(); }},
    {"level", Unit::kCount, "How many ranges are around it on its thread.",
     [](const One& one) { return int64_t{one.range->level}; }},
    {"children", Unit::kCount, "The ranges directly in it, on its thread.",
     [](const One& one) { return int64_t{one.range->children}; }, Shown::kDetail},
    {"id", Unit::kCount, "The number of the range on its rank.",
     [](const One& one) { return one.id; }, Shown::kDetail},
    {"parent_id", Unit::kCount,
     "The number of the range around it on its thread; \"-\" if there is none.",
     [](const One& one) { return one.parent_id == 0 ? Cell() : Cell(one.parent_id); },
     Shown::kDetail},
    {"projected_start_ns", Unit::kNs,
     "When the first work that it launched began, counted from the rank's first event.",
     [](const One& one) { return OfWork(one, one.work.first - one.trace->first_ns); },
     Shown::kDetail},
    {"projected_ns", Unit::kNs,
     "The time from the first work that it launched to the end of the last.",
     [](const One& one) { return OfWork(one, one.work.projected_ns()); }},
    {"gpu_ns", Unit::kNs, "The device work that it launched, added up.",
     [](const One& one) { return OfWork(one, one.work.total_ns); }, Shown::kDetail},
    {"gpu_ops", Unit::kCount, "The kernels, copies and memsets that it launched.",
     [](const One& one) { return one.work.operations; }, Shown::kDetail},
    {"unfinished", Unit::kCount, "1 if the range had not ended when the trace ended.",
     [](const One& one) { return int64_t{one.range->unfinished}; }, Shown::kDetail},
};

}  // namespace

Table TabulateRangeProjection(const Run& run, const ReportOptions&) {
  std::map<RangeProjectionKey, RangeProjectionRow> rows;
  for (const Trace& trace : run.traces) AddTrace(trace, &rows);
  std::vector<RangeProjectionRow> sorted;
  for (auto& [key, row] : rows) sorted.push_back(std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const RangeProjectionRow& a, const RangeProjectionRow& b) {
                     return a.projected.total_ns > b.projected.total_ns;
                   });
  Table table = TableOf(
      "Ranges on the devices: from the first work that they launched to the "
      "end of the last",
      kRangeProjectionColumns, sorted);
  if (table.rows.empty()) table.notes.push_back("no range launched work on a device");
  return table;
}

Table TabulateRangeTrace(const Run& run, const ReportOptions&) {
  std::vector<One> all;
  for (const Trace& trace : run.traces) {
    const ProjectedWork work(trace);
    const std::vector<RangeInstance>& ranges = RangeInstances(trace);
    for (size_t i = 0; i < ranges.size(); ++i) {
      const uint32_t parent = ranges[i].parent;
      all.push_back({&trace, &ranges[i], static_cast<int64_t>(i) + 1,
                     parent == kNone ? 0 : int64_t{parent} + 1, work.Of(ranges[i])});
    }
  }
  Table table = TableOf("Each range, by start", kEachColumns, all);
  if (table.rows.empty()) {
    table.notes.push_back("the program used no NVTX range and no record_function");
  }
  return table;
}

}  // namespace ranktap::collector

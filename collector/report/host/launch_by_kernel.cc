#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "collector/facts/numbers/duration_distribution.h"
#include "collector/report/columns.h"
#include "collector/report/duration_columns.h"
#include "collector/report/reports.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

struct LaunchByKernelRow {
  std::string name;
  DurationDistribution whole, call, queue, kernel;
  int64_t ranks = 0;
  void Add(const LaunchByKernelRow& other) {
    whole.Add(other.whole);
    call.Add(other.call);
    queue.Add(other.queue);
    kernel.Add(other.kernel);
    ++ranks;
  }
};

// A launch that began several kernels, of a graph, is none of these: only the first one waited.
std::vector<uint8_t> KernelsOfLaunches(const Trace& trace) {
  std::vector<uint8_t> counts(trace.api_calls.size());
  for (const uint32_t launch : trace.kernels.launch) {
    if (launch != kNone && counts[launch] < 2) ++counts[launch];
  }
  return counts;
}

void AddTrace(const Trace& trace, std::map<std::string, LaunchByKernelRow>* rows, int64_t* shared) {
  const std::vector<uint8_t> of_launch = KernelsOfLaunches(trace);
  std::vector<LaunchByKernelRow> by_id(trace.dictionary.strings() + 1);
  const Kernels& kernels = trace.kernels;
  const ApiCalls& calls = trace.api_calls;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const uint32_t launch = kernels.launch[i];
    if (launch == kNone || kernels.start[i] == kUntimed) continue;
    if (of_launch[launch] > 1 || kernels.graph.At(i) != 0) {
      ++*shared;
      continue;
    }
    LaunchByKernelRow& row = by_id[std::min<size_t>(kernels.name[i], by_id.size() - 1)];
    const int64_t queued = kernels.start[i] - calls.end[launch];
    row.whole.Add(std::max(kernels.end[i], calls.end[launch]) - calls.start[launch]);
    row.call.Add(calls.end[launch] - calls.start[launch]);
    if (queued > 0) row.queue.Add(queued);
    row.kernel.Add(kernels.end[i] - kernels.start[i]);
  }
  std::map<std::string, LaunchByKernelRow> of_trace;
  for (uint32_t id = 0; id < by_id.size(); ++id) {
    if (by_id[id].whole.count == 0) continue;
    of_trace[ReadableKernelName(trace.dictionary.String(id))].Add(by_id[id]);
  }
  for (const auto& [name, row] : of_trace) {
    (*rows)[name].Add(row);
    (*rows)[name].name = name;
  }
}

template <DurationDistribution LaunchByKernelRow::*kTime>
ColumnsOf<LaunchByKernelRow> Columns(const std::string& part, const std::string& what) {
  return JoinedColumns<LaunchByKernelRow>({
      {{part + "_ns", Unit::kNs, "The durations of the " + what + ", added up.",
        [](const LaunchByKernelRow& row) { return (row.*kTime).total_ns; }, Shown::kDetail}},
      DurationColumns<LaunchByKernelRow>(
          part + "_", what,
          [](const LaunchByKernelRow& row) -> const DurationDistribution& { return row.*kTime; }),
  });
}

// A kernel waits in the queue from its call's end, where it begins after that.
const ColumnsOf<LaunchByKernelRow> kLaunchByKernelColumns = JoinedColumns<LaunchByKernelRow>({
    {
        {"name", Unit::kText, "The kernel.", [](const LaunchByKernelRow& row) { return row.name; }},
        {"calls", Unit::kCount, "The launches whose kernel ran.",
         [](const LaunchByKernelRow& row) { return row.whole.count; }},
        {"queued", Unit::kCount, "The kernels that began after their call had ended.",
         [](const LaunchByKernelRow& row) { return row.queue.count; }},
    },
    Columns<&LaunchByKernelRow::whole>("total", "launches, from the call to the end of the kernel"),
    Columns<&LaunchByKernelRow::call>("call", "calls that launched it"),
    Columns<&LaunchByKernelRow::queue>("queue", "waits between call and kernel"),
    Columns<&LaunchByKernelRow::kernel>("kernel", "kernels on the device"),
    {{"ranks", Unit::kCount, "The number of ranks that ran it.",
      [](const LaunchByKernelRow& row) { return row.ranks; }, Shown::kDetail}},
});

}  // namespace

Table TabulateLaunchesByKernel(const Run& run, const ReportOptions&) {
  std::map<std::string, LaunchByKernelRow> rows;
  int64_t shared = 0;
  for (const Trace& trace : run.traces) AddTrace(trace, &rows, &shared);
  std::vector<LaunchByKernelRow> sorted;
  for (auto& [name, row] : rows) sorted.push_back(std::move(row));
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const LaunchByKernelRow& a, const LaunchByKernelRow& b) {
                     return a.whole.total_ns > b.whole.total_ns;
                   });
  Table table = TableOf("Kernels from their launch to their end", kLaunchByKernelColumns, sorted);
  if (table.rows.empty()) table.notes.push_back("no kernel has a launch that is known");
  if (shared > 0) {
    table.notes.push_back(fmt::format(
        "{} kernels ran in CUDA graphs, one launch for many: they are not counted here", shared));
  }
  return table;
}

}  // namespace ranktap::collector

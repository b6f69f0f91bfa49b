#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "collector/analysis/numbers/duration_distribution.h"
#include "collector/analysis/numbers/interval_set.h"
#include "collector/analysis/range_instances.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

// Launches of a thread by time, with the kernels that they began.
struct ThreadKernels {
  std::vector<std::pair<int64_t, uint32_t>> launched;  // start of the call, row of kernels
};

std::vector<ThreadKernels> KernelsByThread(const Trace& trace) {
  std::vector<ThreadKernels> threads(trace.writers.size());
  const Kernels& kernels = trace.kernels;
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    const uint32_t launch = kernels.launch[i];
    if (launch == kNone || trace.api_calls.writer[launch] >= threads.size()) continue;
    threads[trace.api_calls.writer[launch]].launched.emplace_back(trace.api_calls.start[launch], i);
  }
  for (ThreadKernels& thread : threads) std::sort(thread.launched.begin(), thread.launched.end());
  return threads;
}

using RangeName = std::pair<uint32_t, uint32_t>;  // name, domain

struct Instances {
  int64_t calls = 0;
  std::map<uint16_t, std::vector<Interval>> open;  // by thread
};

std::map<RangeName, Instances> InstancesByName(const Trace& trace) {
  std::map<RangeName, Instances> names;
  for (const RangeInstance& range : RangeInstances(trace)) {
    Instances& of = names[{range.name, range.domain}];
    ++of.calls;
    of.open[range.writer].emplace_back(range.start, range.end);
  }
  return names;
}

struct Row {
  std::string range, domain, kernel;
  DurationDistribution time;
  int64_t untimed = 0, range_calls = 0, ranks = 0;
};
using Key = std::tuple<std::string, std::string, std::string>;

struct Count {
  DurationDistribution time;
  int64_t untimed = 0;
};

// By name of the kernel. A kernel counts once for a name, though ranges of that name nest.
std::unordered_map<uint32_t, Count> KernelsWithin(const Trace& trace,
                                                  const std::vector<ThreadKernels>& threads,
                                                  const Instances& instances) {
  std::unordered_map<uint32_t, Count> counts;
  const Kernels& kernels = trace.kernels;
  for (const auto& [writer, open] : instances.open) {
    if (writer >= threads.size()) continue;
    const auto& launched = threads[writer].launched;
    for (const auto& [start, end] : Merged(open)) {
      for (auto at = std::lower_bound(launched.begin(), launched.end(), std::pair(start, 0u));
           at != launched.end() && at->first < end; ++at) {
        const uint32_t i = at->second;
        Count& count = counts[kernels.name[i]];
        if (kernels.start[i] == kUntimed) {
          ++count.untimed;
        } else {
          count.time.Add(kernels.end[i] - kernels.start[i]);
        }
      }
    }
  }
  return counts;
}

void AddTrace(const Trace& trace, std::map<Key, Row>* rows) {
  const std::vector<ThreadKernels> threads = KernelsByThread(trace);
  std::unordered_map<uint32_t, std::string> readable;
  std::map<Key, Row> of_trace;
  for (const auto& [name, instances] : InstancesByName(trace)) {
    for (const auto& [kernel, count] : KernelsWithin(trace, threads, instances)) {
      std::string& text = readable[kernel];
      if (text.empty()) text = ReadableKernelName(trace.dictionary.String(kernel));
      Row& row = of_trace[{std::string(trace.dictionary.String(name.first)),
                           std::string(DomainName(trace, name.second)), text}];
      row.time.Add(count.time);
      row.untimed += count.untimed;
      row.range_calls = instances.calls;
    }
  }
  for (const auto& [key, counted] : of_trace) {
    Row& row = (*rows)[key];
    std::tie(row.range, row.domain, row.kernel) = key;
    row.time.Add(counted.time);
    row.untimed += counted.untimed;
    row.range_calls += counted.range_calls;
    ++row.ranks;
  }
}

const ColumnsOf<Row> kColumns = {
    {"range", Unit::kText, [](const Row& row) { return row.range; }},
    {"domain", Unit::kText, [](const Row& row) { return row.domain; }, Shown::kDetail},
    {"kernel", Unit::kText, [](const Row& row) { return row.kernel; }},
    {"calls", Unit::kCount, [](const Row& row) { return row.time.count + row.untimed; }},
    {"total_ns", Unit::kNs, [](const Row& row) { return row.time.total_ns; }},
    {"mean_ns", Unit::kNs, [](const Row& row) { return row.time.mean_ns(); }},
    {"median_ns", Unit::kNs, [](const Row& row) { return row.time.median_ns(); }, Shown::kDetail},
    {"p95_ns", Unit::kNs, [](const Row& row) { return row.time.p95_ns(); }, Shown::kDetail},
    {"stddev_ns", Unit::kNs, [](const Row& row) { return row.time.stddev_ns(); }, Shown::kDetail},
    {"min_ns", Unit::kNs, [](const Row& row) { return row.time.shortest_ns(); }, Shown::kDetail},
    {"max_ns", Unit::kNs, [](const Row& row) { return row.time.max_ns; }, Shown::kDetail},
    {"range_calls", Unit::kCount, [](const Row& row) { return row.range_calls; }, Shown::kDetail},
    {"ranks", Unit::kCount, [](const Row& row) { return row.ranks; }, Shown::kDetail},
};

}  // namespace

Table TabulateRangeKernels(const Run& run, const ReportOptions&) {
  std::map<Key, Row> rows;
  for (const Trace& trace : run.traces) AddTrace(trace, &rows);
  std::vector<const Row*> sorted;
  int64_t untimed = 0;
  for (const auto& [key, row] : rows) {
    sorted.push_back(&row);
    untimed += row.untimed;
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Row* a, const Row* b) { return a->time.total_ns > b->time.total_ns; });
  std::vector<Row> in_order;
  for (const Row* const row : sorted) in_order.push_back(*row);
  Table table = TableOf("Kernels by the range that their launch was in", kColumns, in_order);
  if (table.rows.empty()) table.notes.push_back("no kernel was launched within a range");
  if (untimed > 0) table.notes.push_back("kernels without times count as calls only");
  return table;
}

}  // namespace ranktap::collector

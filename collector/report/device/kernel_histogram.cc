#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "collector/report/capture/rank_summary.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostNames = 10;

struct Bin {
  int64_t calls = 0, total_ns = 0;
};
struct Histogram {
  int64_t total_ns = 0;
  std::map<int64_t, Bin> bins;  // by their lower edge
};

// The edge after this one: 0, 1, 2, 5, 10, 20, 50, ... ns.
int64_t NextEdge(int64_t edge) {
  if (edge == 0) return 1;
  int64_t decade = 1;
  while (edge / decade >= 10) decade *= 10;
  return edge / decade == 2 ? decade * 5 : edge * 2;
}

int64_t LowerEdge(int64_t duration) {
  int64_t edge = 0;
  for (int64_t next = 1; next <= duration; next = NextEdge(next)) edge = next;
  return edge;
}

struct Row {
  std::string name;
  int64_t from;
  Bin bin;
};

const ColumnsOf<Row> kKernelHistogramColumns = {
    {"name", Unit::kText, "The kernel.", [](const Row& row) { return row.name; }},
    {"bin_from_ns", Unit::kNs,
     "The shortest duration that the bin holds: 0, 1, 2, 5, 10, 20, 50, ... ns.",
     [](const Row& row) { return row.from; }},
    {"bin_to_ns", Unit::kNs,
     "Where the next bin begins; a call of just this length belongs to the next bin.",
     [](const Row& row) { return NextEdge(row.from); }},
    {"calls", Unit::kCount, "The calls of the kernel that fall into the bin, over all ranks.",
     [](const Row& row) { return row.bin.calls; }},
    {"total_ns", Unit::kNs, "The durations of these calls, added up.",
     [](const Row& row) { return row.bin.total_ns; }},
};

void AddTrace(const Trace& trace, std::map<std::string, Histogram>* of_names) {
  const Kernels& kernels = trace.kernels;
  std::map<uint32_t, Histogram*> by_id;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (kernels.start[i] == kUntimed) continue;
    Histogram*& histogram = by_id[kernels.name[i]];
    if (histogram == nullptr) {
      histogram = &(*of_names)[ReadableKernelName(trace.dictionary.String(kernels.name[i]))];
    }
    const int64_t duration = kernels.end[i] - kernels.start[i];
    Bin& bin = histogram->bins[LowerEdge(duration)];
    ++bin.calls;
    bin.total_ns += duration;
    histogram->total_ns += duration;
  }
}

}  // namespace

Table TabulateKernelHistogram(const Run& run, const ReportOptions&) {
  std::map<std::string, Histogram> of_names;
  for (const Trace& trace : run.traces) AddTrace(trace, &of_names);
  std::vector<std::pair<std::string, Histogram>> sorted(of_names.begin(), of_names.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.total_ns > b.second.total_ns;
  });
  if (sorted.size() > kMostNames) sorted.resize(kMostNames);
  std::vector<Row> rows;
  for (const auto& [name, histogram] : sorted) {
    for (const auto& [from, bin] : histogram.bins) rows.push_back({name, from, bin});
  }
  Table table = TableOf("How long the kernels take, in bins", kKernelHistogramColumns, rows);
  if (rows.empty()) table.notes.push_back(WhyNoWork(run, "no kernel ran on a device"));
  if (of_names.size() > kMostNames) {
    table.notes.push_back(fmt::format("the {} kernels with the most time of {}; 'kernels' has all",
                                      kMostNames, of_names.size()));
  }
  return table;
}

}  // namespace ranktap::collector

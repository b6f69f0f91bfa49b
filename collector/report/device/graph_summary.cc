
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "collector/analysis/device_timeline.h"
#include "collector/analysis/graph_nodes.h"
#include "collector/analysis/numbers/duration_statistics.h"
#include "collector/report/host/call_sites.h"
#include "collector/report/reports.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

struct Work {
  DurationStatistics time;
  std::set<const Trace*> ranks;
};
// What ran, in which range it was captured, by which function and line, through which call.
using Key = std::tuple<std::string, std::string, std::string, std::string, std::string>;
using Works = std::map<Key, Work>;

struct Origin {
  std::string range, function, source, api;
};

Origin OriginOf(const Trace& trace, const GraphNode& node) {
  Origin origin;
  if (node.has_range) origin.range = trace.dictionary.String(node.range);
  if (!node.has_call) return origin;
  origin.api = trace.dictionary.Api(node.api).name;
  if (node.stack == 0) return origin;
  const SourceFrame frame = FrameOfStack(trace, node.stack);
  origin.function = frame.function;
  origin.source = SourceText(frame);
  return origin;
}

void Add(const Trace& trace, const DeviceSpan& span, uint64_t node, Works* works,
         std::map<uint64_t, Origin>* origins) {
  const auto [origin, is_new] = origins->try_emplace(node);
  if (is_new) {
    if (const GraphNode* made = FindGraphNode(trace, node)) origin->second = OriginOf(trace, *made);
  }
  const auto& [range, function, source, api] = origin->second;
  Work& work = (*works)[{NameOf(trace, span), range, function, source, api}];
  work.time.Add(span.end - span.start);
  work.ranks.insert(&trace);
}

// The node of a graph that this work is; 0: it belongs to none.
uint64_t NodeOf(const Trace& trace, const DeviceSpan& span) {
  switch (span.table) {
    case DeviceSpan::Table::kKernel:
      return trace.kernels.graph_node.At(span.row);
    case DeviceSpan::Table::kCopy:
      return trace.copies.graph_node.At(span.row);
    case DeviceSpan::Table::kMemset:
      return trace.memsets.graph_node.At(span.row);
    default:
      return 0;
  }
}

}  // namespace

Table TabulateGraphs(const Run& run, const ReportOptions&) {
  Works works;
  bool whole = false, nodes = false;
  for (const Trace& trace : run.traces) {
    std::map<uint64_t, Origin> origins;
    for (const DeviceSpan& span : DeviceTimeline(trace)) {
      const bool is_graph = span.table == DeviceSpan::Table::kGraphLaunch;
      const uint64_t node = NodeOf(trace, span);
      if (!is_graph && node == 0) continue;
      Add(trace, span, node, &works, &origins);
      (is_graph ? whole : nodes) = true;
    }
  }
  std::vector<std::pair<Key, Work>> rows(works.begin(), works.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.time.total_ns > b.second.time.total_ns;
  });
  Table table{.name = "graphs",
              .title = "What ran in CUDA graphs, and where it was captured, all ranks",
              .columns = {{"work", Unit::kText},
                          {"calls", Unit::kCount},
                          {"gpu_ns", Unit::kNs},
                          {"mean_ns", Unit::kNs},
                          {"range", Unit::kText},
                          {"function", Unit::kText},
                          {"source", Unit::kText},
                          {"api", Unit::kText, Shown::kDetail},
                          {"ranks", Unit::kCount, Shown::kDetail}}};
  for (const auto& [key, work] : rows) {
    const auto& [name, range, function, source, api] = key;
    table.rows.push_back({name, work.time.count, work.time.total_ns, work.time.mean_ns(), range,
                          function, source, api, static_cast<int64_t>(work.ranks.size())});
  }
  if (rows.empty()) table.notes.push_back("no CUDA graph ran");
  if (whole && !nodes) {
    table.notes.push_back("graphs as a whole; ranktap run --level full records their nodes");
  }
  return table;
}

}  // namespace ranktap::collector

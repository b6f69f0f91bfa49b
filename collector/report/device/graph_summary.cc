
#include <fmt/core.h>

#include <compare>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "collector/facts/device_timeline.h"
#include "collector/facts/graph_nodes.h"
#include "collector/facts/numbers/duration_statistics.h"
#include "collector/report/capture/origin_advice.h"
#include "collector/report/columns.h"
#include "collector/report/host/call_sites.h"
#include "collector/report/reports.h"
#include "collector/trace/sort_rows.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

// In which range a node was captured, by which function and line, through which call.
struct Origin {
  std::string range, function, source, api;

  friend auto operator<=>(const Origin&, const Origin&) = default;
};
struct Work {
  std::string name;
  Origin origin;
  DurationStatistics time;
  std::set<const Trace*> ranks;
};
using Works = std::map<std::pair<std::string, Origin>, Work>;  // by name and origin

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
  Work& work = (*works)[{NameOf(trace, span), origin->second}];
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

// Files of other tools need not say a kernel's node: the launch's name tells.
const std::string& LaunchName(const Trace& trace, const DeviceSpan& span) {
  return trace.dictionary.Api(trace.api_calls.api[span.launch]).name;
}
bool LaunchedByGraph(const Trace& trace, const DeviceSpan& span) {
  return span.launch != kNone && LaunchName(trace, span).find("GraphLaunch") != std::string::npos;
}
struct GraphCalls {
  std::set<std::pair<const Trace*, uint32_t>> launches;
  int64_t work = 0;
};
using LaunchesByName = std::map<std::string, GraphCalls>;

// NOLINTNEXTLINE(performance-unnecessary-value-param): its parts are moved out
std::vector<Work> LongestFirst(Works works) {
  std::vector<Work> sorted;
  for (auto& [key, work] : works) {
    std::tie(work.name, work.origin) = key;
    sorted.push_back(std::move(work));
  }
  SortRows(&sorted, [](const Work& a, const Work& b) { return a.time.total_ns > b.time.total_ns; });
  return sorted;
}

const ColumnsOf<Work> kGraphColumns = {
    {"work", Unit::kText, "The kernel, copy or memset; or the graph as a whole.",
     [](const Work& work) { return work.name; }},
    {"calls", Unit::kCount, "How often the devices ran it.",
     [](const Work& work) { return work.time.count; }},
    {"gpu_ns", Unit::kNs, "The device's time on it, added up.",
     [](const Work& work) { return work.time.total_ns; }},
    {"mean_ns", Unit::kNs, "The mean time of one run.",
     [](const Work& work) { return work.time.mean_ns(); }},
    {"range", Unit::kText, "The NVTX range that was open when the program captured it.",
     [](const Work& work) { return work.origin.range; }},
    {"function", Unit::kText, "The program's function that called CUDA to capture it.",
     [](const Work& work) { return work.origin.function; }},
    {"source", Unit::kText, "The file and line of that call.",
     [](const Work& work) { return work.origin.source; }},
    {"api", Unit::kText, "The CUDA function that captured it.",
     [](const Work& work) { return work.origin.api; }, Shown::kDetail},
    {"ranks", Unit::kCount, "The number of ranks that ran it.",
     [](const Work& work) { return static_cast<int64_t>(work.ranks.size()); }, Shown::kDetail},
};

}  // namespace

Table TabulateGraphs(const Run& run, const ReportOptions&) {
  Works works;
  bool whole = false, nodes = false;
  LaunchesByName launches;
  for (const Trace& trace : run.traces) {
    std::map<uint64_t, Origin> origins;
    for (const DeviceSpan& span : DeviceTimeline(trace)) {
      const bool is_graph = span.table == DeviceSpan::Table::kGraphLaunch;
      const uint64_t node = NodeOf(trace, span);
      const bool is_launched = !trace.is_ours() && LaunchedByGraph(trace, span);
      if (!is_graph && node == 0 && !is_launched) continue;
      Add(trace, span, node, &works, &origins);
      (is_graph ? whole : nodes) = true;
      if (!is_launched) continue;
      GraphCalls& calls = launches[LaunchName(trace, span)];
      calls.launches.emplace(&trace, span.launch);
      ++calls.work;
    }
  }
  Table table = TableOf("What ran in CUDA graphs, and where it was captured, all ranks",
                        kGraphColumns, LongestFirst(std::move(works)));
  if (table.rows.empty()) table.notes.push_back("no CUDA graph ran");
  for (const auto& [api, calls] : launches) {
    table.notes.push_back(fmt::format("{} {} of {} ran {} pieces of work", calls.launches.size(),
                                      calls.launches.size() == 1 ? "call" : "calls", api,
                                      calls.work));
  }
  if (whole && !nodes) {
    table.notes.push_back(AdviceFor(
        run, {.ours = "graphs as a whole; ranktap run --level full records their nodes",
              .profiler = "graphs as a whole; the file does not have their nodes",
              .other = "graphs as a whole; nsys profile --cuda-graph-trace=node records their "
                       "nodes"}));
  }
  return table;
}

}  // namespace ranktap::collector

#include "collector/report/device/kernel_summary.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/device/hta_kernels.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

struct ByName {
  DurationDistribution time;
  int64_t untimed = 0;
};

// By name id, which costs an array index an event; names are looked at once per id.
std::vector<ByName> CountKernels(const Trace& trace) {
  std::vector<ByName> by_id(trace.dictionary.strings() + 1);
  const Kernels& kernels = trace.kernels;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const size_t id = std::min<size_t>(kernels.name[i], by_id.size() - 1);
    if (kernels.start[i] == kUntimed) {
      ++by_id[id].untimed;
    } else {
      by_id[id].time.Add(kernels.end[i] - kernels.start[i]);
    }
  }
  return by_id;
}

std::string WhyNoKernels(const Run& run) {
  bool captured = false, graphs = false;
  for (const Trace& trace : run.traces) {
    captured |= trace.is_ours();
    graphs |= trace.graph_launches.size() > 0;
  }
  if (graphs) return "kernels ran in CUDA graphs only, timed as a whole: ranktap report RUN graphs";
  return captured ? "no kernel ran while capture was at level kernels or full"
                  : "no kernel is in it";
}

struct Line {
  KernelRow kernel;
  int64_t total_ns = 0;  // of all kernels
};

const ColumnsOf<Line> kColumns = {
    {"name", Unit::kText, [](const Line& line) { return line.kernel.name; }},
    {"calls", Unit::kCount,
     [](const Line& line) { return line.kernel.time.count + line.kernel.untimed; }},
    {"total_ns", Unit::kNs, [](const Line& line) { return line.kernel.time.total_ns; }},
    {"share_percent", Unit::kPercent,
     [](const Line& line) {
       return line.total_ns == 0 ? Cell(0.0) : Percent(line.kernel.time.total_ns, line.total_ns);
     }},
    {"mean_ns", Unit::kNs, [](const Line& line) { return line.kernel.time.mean_ns(); }},
    {"median_ns", Unit::kNs, [](const Line& line) { return line.kernel.time.median_ns(); },
     Shown::kDetail},
    {"p95_ns", Unit::kNs, [](const Line& line) { return line.kernel.time.p95_ns(); },
     Shown::kDetail},
    {"stddev_ns", Unit::kNs, [](const Line& line) { return line.kernel.time.stddev_ns(); },
     Shown::kDetail},
    {"min_ns", Unit::kNs, [](const Line& line) { return line.kernel.time.shortest_ns(); },
     Shown::kDetail},
    {"max_ns", Unit::kNs, [](const Line& line) { return line.kernel.time.max_ns; }, Shown::kDetail},
    {"ranks", Unit::kCount, [](const Line& line) { return line.kernel.ranks; }, Shown::kDetail},
};

}  // namespace

std::vector<KernelRow> SummarizeKernels(const std::vector<Trace>& traces) {
  std::map<std::string, KernelRow> rows;
  for (const Trace& trace : traces) {
    std::map<std::string, ByName> of_trace;
    const std::vector<ByName> by_id = CountKernels(trace);
    for (uint32_t id = 0; id < by_id.size(); ++id) {
      if (by_id[id].time.count + by_id[id].untimed == 0) continue;
      ByName& sum = of_trace[ReadableKernelName(trace.dictionary.String(id))];
      sum.time.Add(by_id[id].time);
      sum.untimed += by_id[id].untimed;
    }
    for (const auto& [name, sum] : of_trace) {
      KernelRow& row = rows[name];
      row.name = name;
      row.time.Add(sum.time);
      row.untimed += sum.untimed;
      ++row.ranks;
    }
  }
  std::vector<KernelRow> sorted;
  for (auto& [name, row] : rows) sorted.push_back(std::move(row));
  std::sort(sorted.begin(), sorted.end(), [](const KernelRow& a, const KernelRow& b) {
    return std::tie(b.time.total_ns, a.name) < std::tie(a.time.total_ns, b.name);
  });
  return sorted;
}

Table TabulateKernels(const Run& run, const ReportOptions& options) {
  if (options.hta_compat) return TabulateHtaKernels(run);
  std::vector<Line> lines;
  int64_t total = 0, untimed = 0;
  for (KernelRow& row : SummarizeKernels(run.traces)) {
    total += row.time.total_ns;
    untimed += row.untimed;
    lines.push_back({std::move(row)});
  }
  for (Line& line : lines) line.total_ns = total;
  Table table = TableOf("GPU kernels, all ranks", kColumns, lines);
  if (lines.empty()) table.notes.push_back(WhyNoKernels(run));
  if (untimed > 0) {
    table.notes.push_back(fmt::format(
        "{} kernel records came from CUPTI without times; they count as calls only", untimed));
  }
  return table;
}

}  // namespace ranktap::collector

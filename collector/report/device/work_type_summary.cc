
#include <algorithm>
#include <array>
#include <numeric>

#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

constexpr std::array<WorkKind, 3> kKinds = {WorkKind::kCompute, WorkKind::kCommunication,
                                            WorkKind::kMemory};

std::string Combination(unsigned running) {
  std::string text;
  for (unsigned i = 0; i < kKinds.size(); ++i) {
    if ((running >> i & 1) == 0) continue;
    text += (text.empty() ? "" : " overlapping ") + std::string(NameOf(kKinds[i]));
  }
  return text;
}

// Time by set of kinds that ran at once. `unit`: each piece is cut down to a multiple of it.
void AddTrace(const std::vector<DeviceSpan>& spans, int64_t unit,
              std::array<int64_t, 8>* by_combination) {
  std::vector<std::pair<int64_t, int>> changes;
  for (unsigned i = 0; i < kKinds.size(); ++i) {
    for (const auto& [start, end] : MergedIntervals(spans, kKinds[i])) {
      changes.emplace_back(start, 1 << i);
      changes.emplace_back(end, -(1 << i));
    }
  }
  std::sort(changes.begin(), changes.end());
  int running = 0;
  for (size_t i = 0; i + 1 < changes.size(); ++i) {
    running += changes[i].second;
    const int64_t length = changes[i + 1].first - changes[i].first;
    if (running > 0) (*by_combination)[static_cast<size_t>(running)] += length / unit * unit;
  }
}

struct CombinationTime {
  unsigned running;
  int64_t ns;
  int64_t total_ns;  // of all combinations
};

std::vector<CombinationTime> LongestFirst(const std::array<int64_t, 8>& by_combination) {
  const int64_t total = std::accumulate(by_combination.begin(), by_combination.end(), int64_t{0});
  std::vector<CombinationTime> sorted;
  for (unsigned running = 1; running < by_combination.size(); ++running) {
    if (by_combination[running] == 0) continue;
    sorted.push_back({running, by_combination[running], total});
  }
  SortRows(&sorted, [](const CombinationTime& a, const CombinationTime& b) { return a.ns > b.ns; });
  return sorted;
}

const ColumnsOf<CombinationTime> kColumns = {
    {"type", Unit::kText, "The kinds of work that ran at once.",
     [](const CombinationTime& row) { return Combination(row.running); }},
    {"total_ns", Unit::kNs, "The time in which just these kinds ran, over all ranks.",
     [](const CombinationTime& row) { return row.ns; }},
    {"share_percent", Unit::kPercent, "The share of the time of all kinds together.",
     [](const CombinationTime& row) { return Percent(row.ns, row.total_ns); }},
};

}  // namespace

Table TabulateWorkTypes(const Run& run, const ReportOptions& options) {
  std::array<int64_t, 8> by_combination{};
  for (const Trace& trace : run.traces) {
    AddTrace(options.hta_compat ? HtaDeviceTimeline(trace) : DeviceTimeline(trace),
             options.hta_compat ? 1000 : 1, &by_combination);
  }
  Table table =
      TableOf("GPU time by kind of work, all ranks", kColumns, LongestFirst(by_combination));
  if (table.rows.empty()) table.notes.push_back(WhyNoWork(run));
  return table;
}

}  // namespace ranktap::collector

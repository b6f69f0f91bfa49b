
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
  std::array<std::vector<Interval>, kKinds.size()> sets;
  std::array<size_t, kKinds.size()> changes{};  // of each set: two for each of its intervals
  for (size_t i = 0; i < sets.size(); ++i) sets[i] = MergedIntervals(spans, kKinds[i]);
  const auto next_of = [&](size_t i) {
    if (changes[i] / 2 == sets[i].size()) return INT64_MAX;
    const Interval& interval = sets[i][changes[i] / 2];
    return changes[i] % 2 == 0 ? interval.first : interval.second;
  };
  size_t running = 0;
  for (int64_t since = 0;;) {
    const int64_t next = std::min({next_of(0), next_of(1), next_of(2)});
    if (next == INT64_MAX) return;
    if (running > 0) (*by_combination)[running] += (next - since) / unit * unit;
    since = next;
    for (size_t i = 0; i < sets.size(); ++i) {
      if (next_of(i) != next) continue;
      running ^= size_t{1} << i;
      ++changes[i];
    }
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

const ColumnsOf<CombinationTime> kWorkTypeColumns = {
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
  Table table = TableOf("GPU time by kind of work, all ranks", kWorkTypeColumns,
                        LongestFirst(by_combination));
  if (table.rows.empty()) table.notes.push_back(WhyNoWork(run));
  return table;
}

}  // namespace ranktap::collector


#include <algorithm>
#include <array>
#include <numeric>

#include "collector/facts/kinds_at_once.h"
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

using Combinations = std::array<int64_t, 8>;  // time by set of kKinds

void AddTrace(const Trace& trace, bool as_hta, Combinations* times) {
  if (!as_hta) {
    const KindsAtOnce& kinds = KindsAtOnceOf(trace);
    for (KindSet set = 0; set < kinds.ns.size(); ++set) {
      (*times)[set % times->size()] += kinds.ns[set];
    }
    return;
  }
  // HTA cuts each piece down to whole microseconds.
  const auto known = static_cast<KindSet>(times->size() - 1);
  SweepKinds(HtaDeviceTimeline(trace), known, [times](KindSet set, int64_t start, int64_t end) {
    (*times)[set] += (end - start) / 1000 * 1000;
  });
}

struct CombinationTime {
  unsigned running;
  int64_t ns;
  int64_t total_ns;  // of all combinations
};

std::vector<CombinationTime> LongestFirst(const Combinations& by_combination) {
  const int64_t total =
      std::accumulate(by_combination.begin() + 1, by_combination.end(), int64_t{0});
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
  Combinations by_combination{};
  for (const Trace& trace : run.traces) AddTrace(trace, options.hta_compat, &by_combination);
  Table table = TableOf("GPU time by kind of work, all ranks", kWorkTypeColumns,
                        LongestFirst(by_combination));
  if (table.rows.empty()) table.notes.push_back(WhyNoWork(run));
  return table;
}

}  // namespace ranktap::collector

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "collector/facts/causes/waterfall.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/claims/transfer.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/report/steps/verdict_scope.h"
#include "collector/report/steps/verdict_words.h"

namespace ranktap::collector {
namespace {

// Says which steps the means are of.
void AddStepsNote(const Run& run, const std::vector<RankWaterfall>& waterfalls, Table* table) {
  for (size_t t = 0; t < waterfalls.size(); ++t) {
    if (waterfalls[t].counted > 0) continue;
    table->notes.push_back(
        fmt::format("{}: {}", RankName(run.traces[t]), WhyNoWork(run.traces[t])));
  }
  std::string steps = WhichSteps(run);
  if (steps.empty()) return;
  table->notes.push_back(std::move(steps));
  if (std::string ahead = DescribeHostAhead(run); !ahead.empty()) {
    table->notes.push_back(std::move(ahead));
  }
}

// A cause, over the ranks that used a device.
struct CauseRow {
  Cause cause{};
  int64_t mean_ns = 0;
  int64_t sum_ns = 0, all_ns = 0;  // of it and of all causes, over the ranks
  int64_t least_ns = 0, most_ns = 0;
  const Trace* most = nullptr;
  bool tells_waiting = true;
};

const ColumnsOf<CauseRow> kCauseColumns = {
    {"cause", Unit::kText, "The cause that takes time from a step.",
     [](const CauseRow& row) { return std::string(SaidName(row.cause, row.tells_waiting)); }},
    {"mean_ns", Unit::kNs, "The time of the mean step that it takes, over all ranks.",
     [](const CauseRow& row) { return row.mean_ns; }},
    {"share_percent", Unit::kPercent, "The share of the mean step.",
     [](const CauseRow& row) { return Percent(row.sum_ns, row.all_ns); }},
    {"least_ns", Unit::kNs, "The time on the rank that loses least to it.",
     [](const CauseRow& row) { return row.least_ns; }, Shown::kDetail},
    {"most_ns", Unit::kNs, "The time on the rank that loses most to it.",
     [](const CauseRow& row) { return row.most_ns; }},
    {"most_rank", Unit::kCount, "The rank that loses most to it.",
     [](const CauseRow& row) { return RankCell(*row.most); }},
};

// The first rank with the least of a cause, and the first with the most.
std::pair<uint32_t, uint32_t> LeastAndMost(const std::vector<RankWaterfall>& waterfalls,
                                           const std::vector<uint32_t>& ranks, size_t cause) {
  const auto less = [&](uint32_t a, uint32_t b) {
    return waterfalls[a].mean[cause] < waterfalls[b].mean[cause];
  };
  return {*std::min_element(ranks.begin(), ranks.end(), less),
          *std::max_element(ranks.begin(), ranks.end(), less)};
}

std::vector<CauseRow> CompareRanks(const Run& run, const std::vector<RankWaterfall>& waterfalls) {
  std::vector<uint32_t> ranks;  // that used a device
  CauseTimes sums{};
  for (uint32_t t = 0; t < waterfalls.size(); ++t) {
    if (waterfalls[t].counted == 0) continue;
    ranks.push_back(t);
    for (size_t c = 0; c < kCauses; ++c) sums[c] += waterfalls[t].mean[c];
  }
  const int64_t all = std::accumulate(sums.begin(), sums.end(), int64_t{0});
  const bool tells_waiting = TellsWaiting(run);
  std::vector<CauseRow> rows;
  for (size_t c = 0; c < kCauses; ++c) {
    if (sums[c] == 0) continue;
    const auto [least, most] = LeastAndMost(waterfalls, ranks, c);
    rows.push_back({static_cast<Cause>(c), sums[c] / static_cast<int64_t>(ranks.size()), sums[c],
                    all, waterfalls[least].mean[c], waterfalls[most].mean[c], &run.traces[most],
                    tells_waiting});
  }
  return rows;
}

struct CauseOfRank {
  const Trace* trace = nullptr;
  Cause cause{};
  int64_t mean_ns = 0, step_ns = 0;
  bool tells_waiting = true;
};

const ColumnsOf<CauseOfRank> kCauseOfRankColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const CauseOfRank& row) { return RankCell(*row.trace); }},
    {"cause", Unit::kText, "The cause that takes time from a step.",
     [](const CauseOfRank& row) { return std::string(SaidName(row.cause, row.tells_waiting)); }},
    {"mean_ns", Unit::kNs, "The time of the rank's mean step that it takes.",
     [](const CauseOfRank& row) { return row.mean_ns; }},
    {"share_percent", Unit::kPercent, "The share of the rank's mean step.",
     [](const CauseOfRank& row) { return Percent(row.mean_ns, row.step_ns); }},
};

}  // namespace

Table TabulateWaterfall(const Run& run, const ReportOptions&) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  Table table = TableOf("Where the mean step went, mean of all ranks", kCauseColumns,
                        CompareRanks(run, waterfalls));
  AddStepsNote(run, waterfalls, &table);
  return table;
}

Table TabulateWaterfallByRank(const Run& run, const ReportOptions&) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const bool tells_waiting = TellsWaiting(run);
  std::vector<CauseOfRank> rows;
  for (size_t t = 0; t < waterfalls.size(); ++t) {
    const CauseTimes& mean = waterfalls[t].mean;
    const int64_t sum = std::accumulate(mean.begin(), mean.end(), int64_t{0});
    for (size_t c = 0; c < kCauses; ++c) {
      if (mean[c] == 0) continue;
      rows.push_back({&run.traces[t], static_cast<Cause>(c), mean[c], sum, tells_waiting});
    }
  }
  Table table = TableOf("Where the mean step went, by rank", kCauseOfRankColumns, rows);
  AddStepsNote(run, waterfalls, &table);
  return table;
}

}  // namespace ranktap::collector

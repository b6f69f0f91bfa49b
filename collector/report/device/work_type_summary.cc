
#include <algorithm>
#include <array>
#include <map>

#include "collector/analysis/device_timeline.h"
#include "collector/analysis/numbers/interval_set.h"
#include "collector/report/cells.h"
#include "collector/report/reports.h"

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

}  // namespace

Table TabulateWorkTypes(const Run& run, const ReportOptions& options) {
  Table table{
      .name = "types",
      .title = "GPU time by kind of work, all ranks",
      .columns = {
          {"type", Unit::kText}, {"total_ns", Unit::kNs}, {"share_percent", Unit::kPercent}}};
  std::array<int64_t, 8> by_combination{};
  for (const Trace& trace : run.traces) {
    AddTrace(options.hta_compat ? HtaDeviceTimeline(trace) : DeviceTimeline(trace),
             options.hta_compat ? 1000 : 1, &by_combination);
  }
  int64_t total = 0;
  std::vector<std::pair<int64_t, unsigned>> order;
  for (unsigned i = 1; i < by_combination.size(); ++i) {
    total += by_combination[i];
    if (by_combination[i] > 0) order.emplace_back(-by_combination[i], i);
  }
  std::sort(order.begin(), order.end());
  for (const auto& [negative, combination] : order) {
    table.rows.push_back({Combination(combination), -negative, Percent(-negative, total)});
  }
  if (table.rows.empty()) table.notes.push_back("nothing ran on a device");
  return table;
}

}  // namespace ranktap::collector


#include <algorithm>
#include <map>
#include <set>

#include "collector/analysis/device_timeline.h"
#include "collector/analysis/numbers/duration_statistics.h"
#include "collector/analysis/steps.h"
#include "collector/analysis/sync_calls.h"
#include "collector/report/cells.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

struct SyncRow {
  DurationStatistics time;
  int64_t in_steps = 0, idle_ns = 0;
  std::set<const Trace*> ranks;
};

// The device's idle time that began between `start` and `end`: the last such gap.
int64_t IdleAfter(const std::vector<Interval>& busy, int64_t start, int64_t end) {
  const auto next = std::upper_bound(busy.begin(), busy.end(), Interval{end, INT64_MAX});
  if (next == busy.begin() || next == busy.end()) return 0;
  const int64_t dry = std::prev(next)->second;
  return dry >= start && dry <= end ? next->first - dry : 0;
}

}  // namespace

Table TabulateSyncs(const Run& run, const ReportOptions&) {
  std::map<std::string, SyncRow> by_call;
  int64_t steps_seen = 0;
  for (const Trace& trace : run.traces) {
    const std::vector<Interval> busy = MergedIntervals(DeviceTimeline(trace));
    const StepList& steps = DetectSteps(trace);
    StepFinder finder(trace, steps);
    steps_seen += static_cast<int64_t>(steps.list.size());
    int64_t told = INT64_MIN;  // the runtime's call and the driver's inside it share one gap
    ForEachSyncCall(trace, [&](const ApiCalls& calls, size_t i) {
      SyncRow& row = by_call[trace.dictionary.Api(calls.api[i]).name];
      row.time.Add(calls.end[i] - calls.start[i]);
      row.in_steps += finder.IndexAt(calls.start[i]) >= 0;
      row.ranks.insert(&trace);
      if (calls.start[i] < told) return;
      row.idle_ns += IdleAfter(busy, calls.start[i], calls.end[i]);
      told = calls.end[i];
    });
  }
  std::vector<std::pair<std::string, SyncRow>> rows(by_call.begin(), by_call.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.time.total_ns > b.second.time.total_ns;
  });
  Table table{.name = "syncs",
              .title = "The host waiting for the device, all ranks",
              .columns = {{"call", Unit::kText},
                          {"calls", Unit::kCount},
                          {"per_step", Unit::kCount},
                          {"total_ns", Unit::kNs},
                          {"mean_ns", Unit::kNs},
                          {"min_ns", Unit::kNs, Shown::kDetail},
                          {"max_ns", Unit::kNs, Shown::kDetail},
                          {"idle_after_ns", Unit::kNs},
                          {"ranks", Unit::kCount, Shown::kDetail}}};
  for (const auto& [name, row] : rows) {
    table.rows.push_back({name, row.time.count,
                          steps_seen == 0 ? Cell()
                                          : Cell(static_cast<double>(row.in_steps) /
                                                 static_cast<double>(steps_seen)),
                          row.time.total_ns, row.time.mean_ns(), row.time.shortest_ns(),
                          row.time.max_ns, row.idle_ns, static_cast<int64_t>(row.ranks.size())});
  }
  if (table.rows.empty()) table.notes.push_back("no call waited for a device");
  return table;
}

}  // namespace ranktap::collector

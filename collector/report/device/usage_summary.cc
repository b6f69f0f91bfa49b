#include "collector/report/device/usage_summary.h"
#include "collector/report/reports.h"

#include <algorithm>
#include <map>
#include <optional>

#include "collector/analysis/numbers/interval_set.h"
#include "collector/analysis/steps.h"
#include "collector/report/cells.h"

namespace ranktap::collector {
namespace {

struct DeviceUse {
  std::vector<Interval> kernels, work;  // merged
  std::map<int64_t, Interval> steps;    // from first start to last end
  int64_t start() const { return kernels.front().first; }
  int64_t end() const { return kernels.back().second; }
};

bool IsKernel(const DeviceSpan& span) {
  return span.table == DeviceSpan::Table::kKernel || span.table == DeviceSpan::Table::kGraphLaunch;
}

// By device; only those that ran a kernel.
std::map<uint32_t, DeviceUse> FindUse(const Trace& trace) {
  StepFinder steps(trace, DetectSteps(trace));
  std::map<uint32_t, DeviceUse> devices;
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    DeviceUse& use = devices[span.device];
    use.work.emplace_back(span.start, span.end);
    if (!IsKernel(span)) continue;
    use.kernels.emplace_back(span.start, span.end);
    const int64_t step = steps.IndexOf(span);
    if (step < 0) continue;
    const auto [at, is_new] = use.steps.try_emplace(step, Interval{span.start, span.end});
    at->second.second = std::max(at->second.second, span.end);
  }
  for (auto& [device, use] : devices) {
    use.kernels = Merged(std::move(use.kernels));
    use.work = Merged(std::move(use.work));
  }
  std::erase_if(devices, [](const auto& device) { return device.second.kernels.empty(); });
  return devices;
}

}  // namespace

Table TabulateUsage(const Run& run, const ReportOptions&) {
  Table table{.name = "usage",
              .title = "How much of their time the devices run kernels",
              .columns = {{"rank", Unit::kCount},
                          {"device", Unit::kCount},
                          {"gpu_usage_ratio", Unit::kPercent},
                          {"train_time_ratio", Unit::kPercent},
                          {"busy_percent", Unit::kPercent},
                          {"kernel_ns", Unit::kNs},
                          {"span_ns", Unit::kNs},
                          {"steps", Unit::kCount, Shown::kDetail}}};
  for (const Trace& trace : run.traces) {
    for (const auto& [device, use] : FindUse(trace)) {
      const int64_t span = use.end() - use.start();
      int64_t training = 0;
      for (const auto& [step, of] : use.steps) training += of.second - of.first;
      table.rows.push_back({RankCell(trace), int64_t{device}, Percent(Length(use.kernels), span),
                            use.steps.empty() ? Cell() : Percent(training, span),
                            Percent(Length(Within(use.work, use.start(), use.end())), span),
                            Length(use.kernels), span, static_cast<int64_t>(use.steps.size())});
    }
  }
  if (table.rows.empty()) table.notes.push_back("no kernel ran on a device");
  return table;
}

Table TabulateUsageOverTime(const Run& run, const ReportOptions&) {
  Table table{.name = "usage-over-time",
              .title = "How much of each moment the devices run kernels",
              .columns = {{"rank", Unit::kCount},
                          {"device", Unit::kCount},
                          {"start_ns", Unit::kNs},
                          {"end_ns", Unit::kNs},
                          {"gpu_usage_ratio", Unit::kPercent}}};
  for (const Trace& trace : run.traces) {
    for (const auto& [device, use] : FindUse(trace)) {
      const int64_t span = use.end() - use.start();
      const int64_t windows = std::min(kUsageWindows, std::max<int64_t>(span, 1));
      for (int64_t i = 0; i < windows; ++i) {
        const auto at = [&](int64_t window) {
          return use.start() + span / windows * window + span % windows * window / windows;
        };
        table.rows.push_back(
            {RankCell(trace), int64_t{device}, at(i) - trace.first_ns, at(i + 1) - trace.first_ns,
             Percent(Length(Within(use.kernels, at(i), at(i + 1))), at(i + 1) - at(i))});
      }
    }
  }
  if (table.rows.empty()) table.notes.push_back("no kernel ran on a device");
  return table;
}

}  // namespace ranktap::collector

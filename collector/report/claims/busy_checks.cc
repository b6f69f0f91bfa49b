// Whether what a file holds of a device is what the device did.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/claims/cross_checks.h"
#include "collector/report/human_units.h"
#include "collector/trace/device_counters.h"

namespace ranktap::collector {
namespace {

constexpr double kTolerableLaunches = 0.25;  // without a kernel, of all
constexpr double kTolerablePercent = 25;  // NVML counts a moment as used if any kernel runs in it
constexpr int64_t kLeastSamples = 3;      // one a second

struct Utilisation {
  double sum = 0;
  int64_t samples = 0;
};

// NVML's, by device, within [first, last).
std::map<uint32_t, Utilisation> UtilisationsOf(const Trace& trace, int64_t first, int64_t last) {
  const std::string_view wanted = kDeviceCounters[static_cast<size_t>(DeviceCounter::kUtilisation)];
  std::map<uint32_t, Utilisation> by_device;
  const CounterSamples& samples = trace.counters;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (samples.device[i] == kNone || samples.start[i] < first || samples.start[i] >= last)
      continue;
    if (trace.dictionary.String(samples.name[i]) != wanted) continue;
    Utilisation& of = by_device[samples.device[i]];
    of.sum += samples.value[i];
    ++of.samples;
  }
  return by_device;
}

std::string UtilisationDisagrees(const Trace& trace) {
  if (trace.counters.size() == 0) return "";
  std::map<uint32_t, std::vector<Interval>> work;
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    Append({span.start, span.end}, &work[span.device]);
  }
  for (const auto& [device, busy] : work) {
    if (busy.empty()) continue;
    const int64_t first = busy.front().first, last = busy.back().second;
    if (last <= first) continue;
    const Utilisation of = UtilisationsOf(trace, first, last)[device];
    if (of.samples < kLeastSamples) continue;
    const double by_nvml = of.sum / static_cast<double>(of.samples);
    const double by_records =
        100 * static_cast<double>(Length(busy)) / static_cast<double>(last - first);
    if (by_nvml - by_records <= kTolerablePercent) continue;
    return fmt::format("NVML saw device {} of {} in use for {} of the time, the records for {}",
                       device, RankName(trace), FormatPercent(by_nvml), FormatPercent(by_records));
  }
  return "";
}

}  // namespace

std::string WorkIsNotInTheFile(const Run& run) {
  for (const Trace& trace : run.traces) {
    const RankRow& row = SummarizeRank(trace);
    const auto without = static_cast<double>(row.launches_without_kernel);
    if (without <= kTolerableLaunches * (without + static_cast<double>(row.kernels))) continue;
    return fmt::format("the work of {} launches of {} is not in the file",
                       row.launches_without_kernel, RankName(trace));
  }
  return "";
}

std::string DevicesSayOtherwise(const Run& run) {
  for (const Trace& trace : run.traces) {
    if (std::string why = UtilisationDisagrees(trace); !why.empty()) return why;
  }
  return "";
}

}  // namespace ranktap::collector

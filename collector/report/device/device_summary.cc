
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/device/throttling.h"
#include "collector/report/reports.h"
#include "collector/trace/device_counters.h"

namespace ranktap::collector {
namespace {

struct Series {
  double sum = 0, least = 0, most = 0;
  int64_t count = 0;

  void Add(double value) {
    least = count == 0 ? value : std::min(least, value);
    most = count == 0 ? value : std::max(most, value);
    sum += value;
    ++count;
  }
  Cell Mean() const { return count == 0 ? Cell() : Cell(sum / static_cast<double>(count)); }
  Cell Least() const { return count == 0 ? Cell() : Cell(static_cast<int64_t>(least)); }
  Cell Most() const { return count == 0 ? Cell() : Cell(static_cast<int64_t>(most)); }
};

struct DeviceSeries {
  const Trace* trace = nullptr;
  uint32_t device = 0;
  std::array<Series, kDeviceCounters.size()> counters;
  int64_t throttled = 0;
  uint64_t reasons = 0;

  const Series& Of(DeviceCounter counter) const { return counters[static_cast<size_t>(counter)]; }
};

std::map<uint32_t, DeviceSeries> Collect(const Trace& trace) {
  std::map<uint32_t, std::optional<size_t>> counter_of;  // by name id
  std::map<uint32_t, DeviceSeries> devices;
  const CounterSamples& samples = trace.counters;
  for (size_t i = 0; i < samples.size(); ++i) {
    const auto [known, is_new] = counter_of.try_emplace(samples.name[i]);
    if (is_new) {
      const auto found = std::find(kDeviceCounters.begin(), kDeviceCounters.end(),
                                   trace.dictionary.String(samples.name[i]));
      if (found != kDeviceCounters.end()) {
        known->second = static_cast<size_t>(found - kDeviceCounters.begin());
      }
    }
    if (!known->second || samples.device[i] == kNone) continue;
    DeviceSeries& device = devices[samples.device[i]];
    device.counters[*known->second].Add(samples.value[i]);
    if (*known->second != static_cast<size_t>(DeviceCounter::kThrottleReasons)) continue;
    const uint64_t throttling = ThrottlingOf(static_cast<uint64_t>(samples.value[i]));
    device.reasons |= throttling;
    device.throttled += throttling != 0 ? 1 : 0;
  }
  for (auto& [device, series] : devices) {
    series.trace = &trace;
    series.device = device;
  }
  return devices;
}

Cell MeanWatts(const DeviceSeries& row) {
  const Series& power = row.Of(DeviceCounter::kPower);
  if (power.count == 0) return {};
  return static_cast<int64_t>(power.sum / static_cast<double>(power.count));
}

const ColumnsOf<DeviceSeries> kDeviceColumns = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const DeviceSeries& row) { return RankCell(*row.trace); }},
    {"device", Unit::kCount, "The device's name and number.",
     [](const DeviceSeries& row) { return int64_t{row.device}; }},
    {"samples", Unit::kCount, "The readings that NVML gave.",
     [](const DeviceSeries& row) { return row.Of(DeviceCounter::kSmClock).count; }, Shown::kDetail},
    {"sm_mhz_least", Unit::kCount, "The lowest clock of the multiprocessors (SM), in MHz.",
     [](const DeviceSeries& row) { return row.Of(DeviceCounter::kSmClock).Least(); }},
    {"sm_mhz_most", Unit::kCount, "The highest clock of the multiprocessors (SM), in MHz.",
     [](const DeviceSeries& row) { return row.Of(DeviceCounter::kSmClock).Most(); }},
    {"watts_mean", Unit::kCount, "The mean power, in watts.",
     [](const DeviceSeries& row) { return MeanWatts(row); }},
    {"watts_most", Unit::kCount, "The highest power, in watts.",
     [](const DeviceSeries& row) { return row.Of(DeviceCounter::kPower).Most(); }, Shown::kDetail},
    {"celsius_most", Unit::kCount, "The highest temperature, in degrees Celsius.",
     [](const DeviceSeries& row) { return row.Of(DeviceCounter::kTemperature).Most(); }},
    {"memory_most", Unit::kBytes, "The most memory that was in use.",
     [](const DeviceSeries& row) { return row.Of(DeviceCounter::kMemoryUsed).Most(); }},
    {"utilisation_percent", Unit::kPercent, "The mean utilisation that NVML reports.",
     [](const DeviceSeries& row) { return row.Of(DeviceCounter::kUtilisation).Mean(); },
     Shown::kDetail},
    {"throttled_percent", Unit::kPercent,
     "The share of the readings in which the clock was held down.",
     [](const DeviceSeries& row) {
       return Percent(row.throttled, row.Of(DeviceCounter::kThrottleReasons).count);
     }},
    {"throttled_by", Unit::kText, "Why the clock was held down.",
     [](const DeviceSeries& row) { return NamesOfThrottling(row.reasons); }},
};

}  // namespace

Table TabulateDevices(const Run& run, const ReportOptions&) {
  std::vector<DeviceSeries> rows;
  for (const Trace& trace : run.traces) {
    for (const auto& [device, series] : Collect(trace)) rows.push_back(series);
  }
  Table table = TableOf("Clocks, power, temperature and memory of the devices, by NVML",
                        kDeviceColumns, rows);
  table.notes.push_back(
      table.rows.empty() ? "no samples: the collector found no libnvidia-ml.so.1, or the run was "
                           "shorter than a second"
                         : "sampled once a second; an idle device and clocks that were set are "
                           "not counted as throttled");
  return table;
}

}  // namespace ranktap::collector

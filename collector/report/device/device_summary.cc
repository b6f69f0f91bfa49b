
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

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

struct Reason {
  uint64_t bit;
  std::string_view name;
};
// NVML's, but for an idle device and for clocks that somebody has set: those are no throttling.
constexpr std::array<Reason, 6> kReasons = {{{0x4, "power cap"},
                                             {0x8, "hardware slowdown"},
                                             {0x10, "sync boost"},
                                             {0x20, "temperature (software)"},
                                             {0x40, "temperature (hardware)"},
                                             {0x80, "power brake"}}};

struct DeviceSeries {
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
    const auto bits = static_cast<uint64_t>(samples.value[i]);
    uint64_t throttling = 0;
    for (const Reason& reason : kReasons) throttling |= bits & reason.bit;
    device.reasons |= throttling;
    device.throttled += throttling != 0 ? 1 : 0;
  }
  return devices;
}

std::string NamesOf(uint64_t reasons) {
  std::string text;
  for (const Reason& reason : kReasons) {
    if ((reasons & reason.bit) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(reason.name);
  }
  return text;
}

}  // namespace

Table TabulateDevices(const Run& run, const ReportOptions&) {
  Table table{.name = "devices",
              .title = "Clocks, power, temperature and memory of the devices, by NVML",
              .columns = {{"rank", Unit::kCount},
                          {"device", Unit::kCount},
                          {"samples", Unit::kCount, Shown::kDetail},
                          {"sm_mhz_least", Unit::kCount},
                          {"sm_mhz_most", Unit::kCount},
                          {"watts_mean", Unit::kCount},
                          {"watts_most", Unit::kCount, Shown::kDetail},
                          {"celsius_most", Unit::kCount},
                          {"memory_most", Unit::kBytes},
                          {"utilisation_percent", Unit::kPercent, Shown::kDetail},
                          {"throttled_percent", Unit::kPercent},
                          {"throttled_by", Unit::kText}}};
  for (const Trace& trace : run.traces) {
    for (const auto& [device, series] : Collect(trace)) {
      const Series& reasons = series.Of(DeviceCounter::kThrottleReasons);
      const Series& power = series.Of(DeviceCounter::kPower);
      table.rows.push_back(
          {trace.info.rank ? Cell(int64_t{*trace.info.rank}) : Cell(), int64_t{device},
           series.Of(DeviceCounter::kSmClock).count, series.Of(DeviceCounter::kSmClock).Least(),
           series.Of(DeviceCounter::kSmClock).Most(),
           power.count == 0
               ? Cell()
               : Cell(static_cast<int64_t>(power.sum / static_cast<double>(power.count))),
           power.Most(), series.Of(DeviceCounter::kTemperature).Most(),
           series.Of(DeviceCounter::kMemoryUsed).Most(),
           series.Of(DeviceCounter::kUtilisation).Mean(),
           reasons.count == 0 ? Cell()
                              : Cell(100.0 * static_cast<double>(series.throttled) /
                                     static_cast<double>(reasons.count)),
           NamesOf(series.reasons)});
    }
  }
  table.notes.push_back(
      table.rows.empty() ? "no samples: the collector found no libnvidia-ml.so.1, or the run was "
                           "shorter than a second"
                         : "sampled once a second; an idle device and clocks that were set are "
                           "not counted as throttled");
  return table;
}

}  // namespace ranktap::collector

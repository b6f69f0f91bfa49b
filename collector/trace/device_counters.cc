#include "collector/trace/device_counters.h"

#include <set>

namespace ranktap::collector {

void AddDeviceCounters(const v1::DeviceSamples& samples, Trace* trace) {
  if (samples.samples_size() == 0) return;
  std::set<uint32_t> used;
  for (const Lane& lane : trace->lanes) used.insert(lane.device);
  std::array<uint32_t, kDeviceCounters.size()> names{};
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = trace->dictionary.AppendString(kDeviceCounters[i]);
  }
  CounterSamples& counters = trace->counters;
  for (const v1::DeviceSample& sample : samples.samples()) {
    if (!used.contains(sample.device())) continue;
    const auto add = [&](DeviceCounter counter, double value) {
      const auto time = static_cast<int64_t>(sample.monotonic_raw_ns());
      counters.start.push_back(time);
      counters.end.push_back(time);
      counters.name.push_back(names[static_cast<size_t>(counter)]);
      counters.device.push_back(sample.device());
      counters.value.push_back(value);
    };
    if (sample.has_sm_clock_mhz()) add(DeviceCounter::kSmClock, sample.sm_clock_mhz());
    if (sample.has_power_mw()) add(DeviceCounter::kPower, sample.power_mw() / 1e3);
    if (sample.has_temperature_c()) add(DeviceCounter::kTemperature, sample.temperature_c());
    if (sample.has_utilisation_percent()) {
      add(DeviceCounter::kUtilisation, sample.utilisation_percent());
    }
    if (sample.has_memory_used()) {
      add(DeviceCounter::kMemoryUsed, static_cast<double>(sample.memory_used()));
    }
    if (sample.has_throttle_reasons()) {
      add(DeviceCounter::kThrottleReasons, static_cast<double>(sample.throttle_reasons()));
    }
  }
}

}  // namespace ranktap::collector

#include "collector/ingest/device_samples.h"

#include <algorithm>

namespace ranktap::collector {
namespace {

// A process may claim any number of devices.
constexpr int kMostSamples = 256;

bool IsDevice(const v1::Device& device, const DeviceReading& reading) {
  return device.uuid().size() == reading.uuid.size() &&
         std::equal(reading.uuid.begin(), reading.uuid.end(), device.uuid().begin(),
                    [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); });
}

void Fill(const DeviceReading& reading, uint32_t device, v1::DeviceSample* sample) {
  sample->set_device(device);
  sample->set_monotonic_raw_ns(reading.monotonic_raw_ns);
  if (reading.sm_clock_mhz) sample->set_sm_clock_mhz(*reading.sm_clock_mhz);
  if (reading.power_mw) sample->set_power_mw(*reading.power_mw);
  if (reading.temperature_c) sample->set_temperature_c(*reading.temperature_c);
  if (reading.utilisation_percent) sample->set_utilisation_percent(*reading.utilisation_percent);
  if (reading.memory_used) sample->set_memory_used(*reading.memory_used);
  if (reading.memory_total) sample->set_memory_total(*reading.memory_total);
  if (reading.throttle_reasons) sample->set_throttle_reasons(*reading.throttle_reasons);
}

}  // namespace

v1::DeviceSamples SamplesFor(const v1::Hello& hello, const std::vector<DeviceReading>& readings) {
  v1::DeviceSamples samples;
  for (const v1::Device& device : hello.devices()) {
    for (const DeviceReading& reading : readings) {
      if (IsDevice(device, reading)) Fill(reading, device.id(), samples.add_samples());
    }
  }
  if (samples.samples_size() > kMostSamples) samples.clear_samples();
  return samples;
}

}  // namespace ranktap::collector

// NVML's readings, to the sessions whose processes see the devices. The rest of Server.
#include <algorithm>
#include <memory>

#include "collector/ingest/server.h"
#include "ranktap/v1/devices.pb.h"

namespace ranktap::collector {
namespace {

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

void Server::OnDeviceReadings(std::vector<DeviceReading> readings) {
  auto shared = std::make_shared<std::vector<DeviceReading>>(std::move(readings));
  loop_.Post([this, shared] { StoreReadings(*shared); });
}

void Server::StoreReadings(const std::vector<DeviceReading>& readings) {
  for (auto& [id, session] : sessions_) {
    // A trace begins with its first event; what says goodbye has nothing to come.
    const bool is_open = session->connection() != 0 && !session->is_dead && !session->is_closing &&
                         !session->said_goodbye && session->ledger().has_events();
    if (!is_open) continue;
    v1::DeviceSamples samples;
    for (const v1::Device& device : session->ledger().hello().devices()) {
      for (const DeviceReading& reading : readings) {
        if (IsDevice(device, reading)) Fill(reading, device.id(), samples.add_samples());
      }
    }
    // A process may claim any number of devices.
    constexpr int kMostSamples = 256;
    if (samples.samples_size() == 0 || samples.samples_size() > kMostSamples) continue;
    const std::string payload = samples.SerializeAsString();
    AddFrame(session.get(), {.type = proto::FrameType::kDeviceSamples},
             std::as_bytes(std::span(payload)));
  }
}

}  // namespace ranktap::collector

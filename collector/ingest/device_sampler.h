// NVML's readings of this node's GPUs, once a second, on a thread of its own: a library that is not
// there, fails or hangs costs nobody anything.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace ranktap::collector {

// One device at one moment; what NVML would not tell is absent.
struct DeviceReading {
  std::array<uint8_t, 16> uuid{};  // as CUDA gives it
  uint64_t monotonic_raw_ns = 0;
  std::optional<uint32_t> sm_clock_mhz, power_mw, temperature_c, utilisation_percent;
  std::optional<uint64_t> throttle_reasons;           // NVML's bits
  std::optional<uint64_t> memory_used, memory_total;  // bytes
};

class DeviceSampler {
 public:
  // Called on the sampler's thread, never after the destructor has begun to return.
  using Take = std::function<void(std::vector<DeviceReading> readings)>;

  explicit DeviceSampler(Take take, const std::string& library = "libnvidia-ml.so.1");
  // Waits for a call into NVML that is under way, at most 200 ms; a thread that hangs in it is left
  // behind and touches nothing of ours any more.
  ~DeviceSampler();
  DeviceSampler(const DeviceSampler&) = delete;
  DeviceSampler& operator=(const DeviceSampler&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;  // the thread's, too
};

// One reading of each device, on a thread that is left behind where the library hangs. Empty: there
// is no device, or it took longer.
std::vector<DeviceReading> ReadDevices(std::chrono::milliseconds patience,
                                       const std::string& library = "libnvidia-ml.so.1");

// "GPU-8a5e...-..." to the 16 bytes that CUDA gives; nullopt: it is none.
std::optional<std::array<uint8_t, 16>> ParseDeviceUuid(const std::string& text);

}  // namespace ranktap::collector

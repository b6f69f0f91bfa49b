#include "collector/ingest/device_sampler.h"

#include <dlfcn.h>
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "collector/ingest/monotonic_clock.h"

namespace ranktap::collector {
namespace {

constexpr auto kEvery = std::chrono::seconds(1);
constexpr auto kPatience = std::chrono::milliseconds(200);
constexpr unsigned kMostDevices = 64;
constexpr int kSuccess = 0;
constexpr int kSmClock = 1;         // NVML_CLOCK_SM
constexpr int kGpuTemperature = 0;  // NVML_TEMPERATURE_GPU

using Device = void*;
struct Memory {
  unsigned long long total, free, used;
};
struct Utilisation {
  unsigned gpu, memory;
};

// NVML by name, as its documentation has it; the vendor's header is not needed.
class Nvml {
 public:
  explicit Nvml(const std::string& library) {
    // Never closed: a thread that hangs in it may still be there.
    handle_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) return;
    const auto init = Find<int()>("nvmlInit_v2");
    const auto count = Find<int(unsigned*)>("nvmlDeviceGetCount_v2");
    const auto by_index = Find<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
    const auto uuid = Find<int(Device, char*, unsigned)>("nvmlDeviceGetUUID");
    unsigned devices = 0;
    if (init == nullptr || count == nullptr || by_index == nullptr || uuid == nullptr) return;
    if (init() != kSuccess || count(&devices) != kSuccess) return;
    for (unsigned i = 0; i < devices && i < kMostDevices; ++i) {
      Device device = nullptr;
      char text[96] = {};
      if (by_index(i, &device) != kSuccess) continue;
      if (uuid(device, text, sizeof(text) - 1) != kSuccess) continue;
      if (const auto id = ParseDeviceUuid(text)) devices_.emplace_back(device, *id);
    }
    clock_ = Find<int(Device, int, unsigned*)>("nvmlDeviceGetClockInfo");
    power_ = Find<int(Device, unsigned*)>("nvmlDeviceGetPowerUsage");
    temperature_ = Find<int(Device, int, unsigned*)>("nvmlDeviceGetTemperature");
    // Renamed in driver 535; both are there since.
    throttle_ = Find<int(Device, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
    memory_ = Find<int(Device, Memory*)>("nvmlDeviceGetMemoryInfo");
    utilisation_ = Find<int(Device, Utilisation*)>("nvmlDeviceGetUtilizationRates");
  }

  bool has_devices() const { return !devices_.empty(); }

  std::vector<DeviceReading> ReadAll() const {
    std::vector<DeviceReading> readings;
    for (const auto& [device, uuid] : devices_) readings.push_back(Read(device, uuid));
    return readings;
  }

 private:
  template <typename Function>
  Function* Find(const char* name) const {
    return reinterpret_cast<Function*>(::dlsym(handle_, name));
  }

  DeviceReading Read(Device device, const std::array<uint8_t, 16>& uuid) const {
    DeviceReading reading{.uuid = uuid, .monotonic_raw_ns = MonotonicRawNs()};
    unsigned value = 0;
    if (clock_ != nullptr && clock_(device, kSmClock, &value) == kSuccess) {
      reading.sm_clock_mhz = value;
    }
    if (power_ != nullptr && power_(device, &value) == kSuccess) reading.power_mw = value;
    if (temperature_ != nullptr && temperature_(device, kGpuTemperature, &value) == kSuccess) {
      reading.temperature_c = value;
    }
    unsigned long long reasons = 0;
    if (throttle_ != nullptr && throttle_(device, &reasons) == kSuccess) {
      reading.throttle_reasons = reasons;
    }
    Memory memory{};
    if (memory_ != nullptr && memory_(device, &memory) == kSuccess) {
      reading.memory_used = memory.used;
      reading.memory_total = memory.total;
    }
    Utilisation utilisation{};
    if (utilisation_ != nullptr && utilisation_(device, &utilisation) == kSuccess) {
      reading.utilisation_percent = utilisation.gpu;
    }
    return reading;
  }

  void* handle_ = nullptr;
  std::vector<std::pair<Device, std::array<uint8_t, 16>>> devices_;
  int (*clock_)(Device, int, unsigned*) = nullptr;
  int (*power_)(Device, unsigned*) = nullptr;
  int (*temperature_)(Device, int, unsigned*) = nullptr;
  int (*throttle_)(Device, unsigned long long*) = nullptr;
  int (*memory_)(Device, Memory*) = nullptr;
  int (*utilisation_)(Device, Utilisation*) = nullptr;
};

int HexDigit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

std::optional<std::array<uint8_t, 16>> ParseDeviceUuid(const std::string& text) {
  std::array<uint8_t, 16> bytes{};
  size_t digits = 0;
  for (size_t i = text.starts_with("GPU-") ? 4 : 0; i < text.size(); ++i) {
    if (text[i] == '-') continue;
    const int digit = HexDigit(text[i]);
    if (digit < 0 || digits == 2 * bytes.size()) return std::nullopt;
    bytes[digits / 2] = static_cast<uint8_t>(bytes[digits / 2] << 4 | digit);
    ++digits;
  }
  return digits == 2 * bytes.size() ? std::optional(bytes) : std::nullopt;
}

std::vector<DeviceReading> ReadDevices(std::chrono::milliseconds patience,
                                       const std::string& library) {
  auto told = std::make_shared<std::promise<std::vector<DeviceReading>>>();
  std::future<std::vector<DeviceReading>> readings = told->get_future();
  std::thread([told, library] { told->set_value(Nvml(library).ReadAll()); }).detach();
  if (readings.wait_for(patience) != std::future_status::ready) return {};
  return readings.get();
}

struct DeviceSampler::State {
  explicit State(Take wanted) : take(std::move(wanted)) {}

  std::mutex mutex;
  std::condition_variable changed;
  bool stopping = false, ended = false;
  Take take;  // called with the mutex held, so never after `stopping`

  void Run(const std::string& library) {
    const Nvml nvml(library);
    bool goes_on = nvml.has_devices();
    while (goes_on) {
      std::vector<DeviceReading> readings = nvml.ReadAll();
      std::unique_lock lock(mutex);
      if (!stopping) take(std::move(readings));
      goes_on = !changed.wait_for(lock, kEvery, [this] { return stopping; });
    }
    {
      const std::lock_guard lock(mutex);
      ended = true;
    }
    changed.notify_all();
  }
};

DeviceSampler::DeviceSampler(Take take, const std::string& library)
    : state_(std::make_shared<State>(std::move(take))) {
  std::thread thread([state = state_, library] { state->Run(library); });
  (void)::pthread_setname_np(thread.native_handle(), "ranktap-nvml");
  thread.detach();
}

DeviceSampler::~DeviceSampler() {
  std::unique_lock lock(state_->mutex);
  state_->stopping = true;
  state_->changed.notify_all();
  (void)state_->changed.wait_for(lock, kPatience, [this] { return state_->ended; });
}

}  // namespace ranktap::collector

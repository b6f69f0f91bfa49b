// A libnvidia-ml of our own: the values are the test's, the functions NVML's. Its devices are the
// stand-in's (same UUIDs). RANKTAP_STANDIN_NVML=hang: the second reading of a power never returns;
// =fail: nvmlInit_v2 fails; =partial: no power, no throttle reasons.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kSuccess = 0, kInvalid = 2, kNotSupported = 3, kUnknown = 999;
constexpr unsigned kDevices = 4;
int g_power_readings = 0;

bool Mode(const char* name) {
  const char* const mode = std::getenv("RANKTAP_STANDIN_NVML");
  return mode != nullptr && std::strcmp(mode, name) == 0;
}
unsigned IndexOf(void* device) {
  return static_cast<unsigned>(reinterpret_cast<size_t>(device)) - 1;
}

}  // namespace

FAKE int nvmlInit_v2() { return Mode("fail") ? kUnknown : kSuccess; }
FAKE int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = kDevices;
  return kSuccess;
}
FAKE int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  if (index >= kDevices) return kInvalid;
  *device = reinterpret_cast<void*>(static_cast<size_t>(index) + 1);
  return kSuccess;
}
FAKE int nvmlDeviceGetUUID(void* device, char* text, unsigned bytes) {
  unsigned char id[16] = {};
  std::memcpy(id, "RANKTAP-SIM-GPU", 15);
  id[15] = static_cast<unsigned char>(IndexOf(device));
  char whole[48];
  int at = std::snprintf(whole, sizeof whole, "GPU-");
  for (int i = 0; i < 16; ++i) {
    at += std::snprintf(whole + at, sizeof whole - static_cast<size_t>(at), "%s%02x",
                        i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", id[i]);
  }
  std::snprintf(text, bytes, "%s", whole);
  return kSuccess;
}
FAKE int nvmlDeviceGetClockInfo(void* device, int type, unsigned* mhz) {
  if (type != 1) return kInvalid;
  *mhz = 1400 + IndexOf(device);
  return kSuccess;
}
FAKE int nvmlDeviceGetPowerUsage(void*, unsigned* milliwatts) {
  if (Mode("partial")) return kNotSupported;
  while (Mode("hang") && g_power_readings > 0) ::sleep(1000);
  ++g_power_readings;
  *milliwatts = 250'500;
  return kSuccess;
}
FAKE int nvmlDeviceGetTemperature(void* device, int, unsigned* celsius) {
  *celsius = 60 + IndexOf(device);
  return kSuccess;
}
FAKE int nvmlDeviceGetCurrentClocksThrottleReasons(void*, unsigned long long* reasons) {
  if (Mode("partial")) return kNotSupported;
  *reasons = 0x4 | 0x1;
  return kSuccess;
}
FAKE int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* memory) {
  memory[0] = 80ull << 30;
  memory[2] = (1ull + IndexOf(device)) << 30;
  memory[1] = memory[0] - memory[2];
  return kSuccess;
}
FAKE int nvmlDeviceGetUtilizationRates(void*, unsigned* rates) {
  rates[0] = 75;
  rates[1] = 10;
  return kSuccess;
}

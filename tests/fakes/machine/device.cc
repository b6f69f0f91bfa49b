#include "tests/fakes/machine/device.h"

#include <stdio.h>
#include <string.h>

#include <algorithm>

#include "tests/fakes/machine/context.h"
#include "tests/fakes/machine/script.h"

namespace ranktap::standin {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

// Bytes per nanosecond, about what an H100 SXM on PCIe 5 gives.
constexpr uint64_t kPinnedRate = 50;
constexpr uint64_t kPageableRate = 12;
constexpr uint64_t kDeviceRate = 1500;
constexpr uint64_t kPeerRate = 370;
constexpr uint64_t kMemsetRate = 2800;
constexpr uint64_t kCopyLatencyNs = 1'200;

uint64_t FromSetting(const char* name, uint64_t fallback, uint64_t* value, uint64_t* generation) {
  if (*generation != SettingsGeneration()) {
    *generation = SettingsGeneration();
    *value = NumberSetting(name, fallback);
  }
  return *value;
}

struct AttributeRow {
  CUdevice_attribute attribute;
  int value;
};

constexpr AttributeRow kAttributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, static_cast<int>(kMultiprocessors)},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 0},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
    {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 2619000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 5120},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 52428800},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
     static_cast<int>(kThreadsPerMultiprocessor)},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
};

}  // namespace

uint64_t DeviceMemoryBytes() { return NumberSetting("MEMORY_GIB", 80) * kGiB; }

DeviceFacts FactsOf(uint32_t device) {
  DeviceFacts facts{};
  snprintf(facts.name, sizeof facts.name, "%s", DeviceName(device));
  memcpy(facts.uuid.bytes, "RANKTAP-SIM-GPU", 15);
  facts.uuid.bytes[15] = static_cast<char>(device);
  facts.memory_bytes = DeviceMemoryBytes();
  facts.memory_bandwidth_kb = 3'352'320'000;
  facts.clock_khz = 1980000;
  facts.multiprocessors = kMultiprocessors;
  facts.l2_bytes = 52428800;
  facts.major = 9;
  facts.minor = 0;
  return facts;
}

bool DeviceAttribute(CUdevice_attribute attribute, uint32_t device, int* value) {
  if (attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX) return false;
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) {
    *value = static_cast<int>(0x18 + device * 0x10);
    return true;
  }
  *value = 0;
  for (const AttributeRow& row : kAttributes) {
    if (row.attribute == attribute) *value = row.value;
  }
  return true;
}

uint64_t KernelDuration(const KernelShape& shape) {
  uint64_t scripted;
  if (ScriptedKernelDuration(shape.name, &scripted)) return scripted;
  static thread_local uint64_t fixed = 0, generation = 0;
  if (FromSetting("KERNEL_NS", 0, &fixed, &generation) != 0) return fixed;
  uint64_t blocks = uint64_t{1} * shape.grid[0] * shape.grid[1] * shape.grid[2];
  uint64_t threads = uint64_t{1} * shape.block[0] * shape.block[1] * shape.block[2];
  uint64_t resident =
      std::clamp<uint64_t>(kThreadsPerMultiprocessor / std::max<uint64_t>(threads, 1), 1, 32);
  uint64_t at_once = resident * kMultiprocessors;
  return 1'500 + (blocks + at_once - 1) / at_once * 1'000;
}

uint64_t CopyDuration(const CopyShape& shape) {
  bool from_host = shape.source == MemoryKind::kPageable || shape.source == MemoryKind::kPinned;
  bool to_host = shape.target == MemoryKind::kPageable || shape.target == MemoryKind::kPinned;
  uint64_t rate = kDeviceRate;
  if (shape.peer) {
    rate = kPeerRate;
  } else if (shape.source == MemoryKind::kPageable || shape.target == MemoryKind::kPageable) {
    rate = kPageableRate;
  } else if (from_host || to_host) {
    rate = kPinnedRate;
  }
  return kCopyLatencyNs + shape.bytes / rate;
}

uint64_t MemsetDuration(uint64_t bytes) { return kCopyLatencyNs + bytes / kMemsetRate; }

uint64_t LaunchLatency() {
  static thread_local uint64_t latency = 0, generation = 0;
  return FromSetting("LAUNCH_LATENCY_NS", 3'000, &latency, &generation);
}

}  // namespace ranktap::standin

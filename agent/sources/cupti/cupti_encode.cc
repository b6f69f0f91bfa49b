// Field numbers of proto/ranktap/v1/hello.proto.
// Runs on: the arming thread, the drain thread.  May not: run in a hook.
#include "agent/sources/cupti/cupti_encode.h"

#include <sys/stat.h>

#include <protozero/pbf_writer.hpp>
#include <string_view>

namespace ranktap::agent::cupti {
namespace {

void AddLibrary(protozero::pbf_writer& hello, std::string_view name, const std::string& version,
                const std::string& path) {
  protozero::pbf_writer library(hello, 10);
  library.add_bytes(1, name.data(), name.size());
  library.add_string(2, version);
  library.add_string(3, path);
}

std::string DriverVersion(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

std::string EncodeDevice(const DeviceRecord& record) {
  constexpr int kMaxThreadsPerMultiprocessor = 39;  // CUdevice_attribute
  constexpr int kSharedMemoryPerBlockOptin = 97;
  std::string bytes;
  protozero::pbf_writer hello(bytes);
  protozero::pbf_writer device(hello, 11);
  device.add_uint32(1, record.id);
  if (record.name != nullptr) device.add_string(2, record.name);
  device.add_uint64(3, record.memory_bytes);
  device.add_uint32(4, record.compute_major);
  device.add_uint32(5, record.compute_minor);
  device.add_uint32(6, record.max_threads_per_block);
  const uint64_t threads = DeviceAttribute(record.id, kMaxThreadsPerMultiprocessor);
  device.add_uint32(7, threads != 0
                           ? static_cast<uint32_t>(threads)
                           : record.max_warps_per_multiprocessor * record.threads_per_warp);
  device.add_uint32(8, record.max_registers_per_block);
  device.add_uint32(9, record.threads_per_warp);
  device.add_uint64(10, record.max_shared_per_block);
  device.add_uint32(11, record.multiprocessors);
  device.add_uint32(12, record.max_registers_per_multiprocessor);
  device.add_uint64(13, DeviceAttribute(record.id, kSharedMemoryPerBlockOptin));
  device.add_uint64(14, record.max_shared_per_multiprocessor);
  device.add_bytes(15, reinterpret_cast<const char*>(record.uuid), sizeof(record.uuid));
  device.add_string(16, DevicePciBus(record.id));
  device.add_uint64(17, record.memory_bandwidth);
  device.add_uint32(18, record.core_clock_khz);
  device.add_uint64(19, record.l2_bytes);
  device.add_uint32(20, record.max_blocks_per_multiprocessor);
  device.add_uint32(21, record.max_warps_per_multiprocessor);
  device.commit();
  return bytes;
}

std::string EncodeLibraries(const LoadedApi& cupti, const DriverFacts& driver) {
  std::string bytes;
  protozero::pbf_writer hello(bytes);
  if (cupti.ok()) AddLibrary(hello, "cupti", std::to_string(cupti.version), cupti.path);
  AddLibrary(hello, "cuda-driver", DriverVersion(driver.version), driver.path);
  hello.add_bool(15, driver.simulated);
  return bytes;
}

std::string EncodeTrial(const LoadedApi& cupti, const DriverFacts& driver) {
  struct stat file {};
  (void)stat(cupti.path.c_str(), &file);
  std::string bytes;
  protozero::pbf_writer trial(bytes);
  trial.add_string(1, cupti.path);
  trial.add_string(2, driver.path);
  trial.add_uint64(3, file.st_dev);
  trial.add_uint64(4, file.st_ino);
  return bytes;
}

}  // namespace ranktap::agent::cupti

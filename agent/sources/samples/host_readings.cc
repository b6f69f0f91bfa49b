// Reads of cpu.stat, /proc/pressure and the CPUs that a thread is allowed.
// Runs on: see host_readings.h.  May not: see there.
#include "agent/sources/samples/host_readings.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "agent/core/control_groups.h"
#include "agent/sources/samples/thread_readings.h"
#include "proto/sample_marks.h"

namespace ranktap::agent::samples {

CpuList CpusOf(int32_t thread) {
  CpuList list;
  std::array<unsigned long, 128> mask{};  // 8192 CPUs, the most that Linux has
  constexpr size_t kBits = 8 * sizeof(mask[0]);
  const long bytes = syscall(SYS_sched_getaffinity, thread, sizeof(mask), mask.data());
  const size_t all = bytes <= 0 ? 0 : 8 * static_cast<size_t>(bytes);
  const auto has = [&mask](size_t cpu) { return (mask[cpu / kBits] >> cpu % kBits & 1) != 0; };
  size_t used = 0;
  for (size_t cpu = 0; cpu < all; ++cpu) {
    if (!has(cpu)) continue;
    const size_t first = cpu;
    while (cpu + 1 < all && has(cpu + 1)) ++cpu;
    list.count += cpu - first + 1;
    constexpr size_t kMostPart = 24;
    if (used + kMostPart > list.text.size()) continue;
    char* const at = list.text.data() + used;
    const char* const comma = used == 0 ? "" : ",";
    used += static_cast<size_t>(first == cpu
                                    ? std::snprintf(at, kMostPart, "%s%zu", comma, cpu)
                                    : std::snprintf(at, kMostPart, "%s%zu-%zu", comma, first, cpu));
  }
  return list;
}

void HostReadings::SetUp() {
  OpenGroups();
  constexpr const char* kFiles[kPressures] = {"/proc/pressure/cpu", "/proc/pressure/io",
                                              "/proc/pressure/memory"};
  for (size_t i = 0; i < kPressures; ++i) {
    // Where pressure is compiled in and switched off, the file opens and does not read.
    char buffer[256];
    if (!OpenOwn(&pressures_[i], kFiles[i]) ||
        ReadOwn(pressures_[i], buffer, sizeof(buffer)).empty()) {
      lacks_ |= proto::kLacksPressure;
    }
  }
  FindNodes();
}

void HostReadings::OpenGroups() {
  size_t open = 0;
  for (const ControlGroup& group : ControlGroupsOf("cpu")) {
    if (open == kMostGroups) break;
    const std::string path = group.folder + "/cpu.stat";
    char buffer[1024];
    if (!OpenOwn(&groups_[open], path.c_str())) continue;
    // A group of version 2 without that controller has a cpu.stat as well.
    const std::string_view text = ReadOwn(groups_[open], buffer, sizeof(buffer));
    if (text.find("nr_throttled") == text.npos) {
      groups_[open].Close();
    } else {
      ++open;
    }
  }
  if (open == 0) lacks_ |= proto::kLacksThrottling;
}

void HostReadings::FindNodes() {
  constexpr uint32_t kMostNodes = 64;
  for (uint32_t node = 0; node < kMostNodes; ++node) {
    std::string cpus =
        ReadWholeFile("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
    while (!cpus.empty() && cpus.back() == '\n') cpus.pop_back();
    if (!cpus.empty()) nodes_.emplace_back(node, std::move(cpus));
  }
  if (nodes_.size() == 1) nodes_.clear();
  if (!nodes_.empty()) FindBusNodes();
}

void HostReadings::FindBusNodes() {
  constexpr const char* kDevices = "/sys/bus/pci/devices";
  DIR* const devices = opendir(kDevices);
  if (devices == nullptr) return;
  while (const dirent* const entry = readdir(devices)) {
    const std::string folder = std::string(kDevices) + "/" + entry->d_name;
    constexpr std::string_view kDisplay = "0x03";
    if (!ReadWholeFile(folder + "/class").starts_with(kDisplay)) continue;
    const std::string node = ReadWholeFile(folder + "/numa_node");
    if (node.empty() || node[0] < '0' || node[0] > '9') continue;  // "-1"
    bus_nodes_.emplace_back(std::strtoul(node.c_str(), nullptr, 10), entry->d_name);
  }
  closedir(devices);
}

HostCounts HostReadings::Read() {
  HostCounts counts;
  char buffer[1024];
  for (const OwnDescriptor& group : groups_) {
    const std::string_view text = ReadOwn(group, buffer, sizeof(buffer));
    counts.throttled_periods += NumberAfter(text, "nr_throttled ");
    // Microseconds in version 2, nanoseconds in version 1.
    counts.throttled_ns +=
        1000 * NumberAfter(text, "throttled_usec ") + NumberAfter(text, "throttled_time ");
  }
  uint64_t* const pressures[kPressures] = {&counts.cpu_pressure_us, &counts.io_pressure_us,
                                           &counts.memory_pressure_us};
  for (size_t i = 0; i < kPressures; ++i) {
    *pressures[i] = NumberAfter(ReadOwn(pressures_[i], buffer, sizeof(buffer)), "total=");
  }
  return counts;
}

void HostReadings::CloseInForkChild() {
  for (OwnDescriptor& file : groups_) file.CloseInForkChild();
  for (OwnDescriptor& file : pressures_) file.CloseInForkChild();
}

}  // namespace ranktap::agent::samples

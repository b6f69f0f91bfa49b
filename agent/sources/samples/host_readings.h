// What the kernel has counted of the machine and of the process's control group.
// Runs on: SetUp on the starting thread, then the sampler.  May not: allocate once it is set up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "agent/core/own_descriptor.h"

namespace ranktap::agent::samples {

// Since some time. What cannot be read is 0.
struct HostCounts {
  uint64_t throttled_ns = 0, throttled_periods = 0;  // of the groups, by their limits of CPU time
  uint64_t cpu_pressure_us = 0, io_pressure_us = 0, memory_pressure_us = 0;  // "some", of all
};

// "0-3,8" of the CPUs that a thread may run on, with how many they are; empty: not known.
struct CpuList {
  std::array<char, 128> text{};
  uint64_t count = 0;
};
CpuList CpusOf(int32_t thread);

class HostReadings {
 public:
  void SetUp();
  HostCounts Read();
  // NUMA nodes with their CPUs ("0-15,32-47"), and with the GPUs that lie on them ("0000:3b:00.0");
  // empty where there is one node.
  using Nodes = std::vector<std::pair<uint32_t, std::string>>;
  const Nodes& nodes() const { return nodes_; }
  const Nodes& bus_nodes() const { return bus_nodes_; }
  // proto::HostLack bits.
  uint32_t lacks() const { return lacks_; }
  void CloseInForkChild();

 private:
  void OpenGroups();
  void FindNodes();
  void FindBusNodes();

  static constexpr size_t kMostGroups = 4, kPressures = 3;
  std::array<OwnDescriptor, kMostGroups> groups_;
  std::array<OwnDescriptor, kPressures> pressures_;  // cpu, io, memory
  Nodes nodes_, bus_nodes_;
  uint32_t lacks_ = 0;
};

}  // namespace ranktap::agent::samples

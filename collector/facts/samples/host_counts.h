// What the kernel counted of a rank's threads, its control group and its machine, between readings
// of the agent's sampler.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/trace/run.h"
#include "proto/sample_marks.h"

namespace ranktap::collector {

struct ThreadCount {
  uint32_t thread = 0;
  std::string name;  // the kernel's, at most 15 characters
  int64_t start = 0, end = 0;
  int64_t ran_ns = 0, queued_ns = 0;  // on a CPU; ready to run, and none ran it
  int64_t major_faults = 0;
  int64_t read_bytes = 0, written_bytes = 0;  // from and to storage
  int64_t voluntary = 0, forced = 0;          // switches
  uint32_t cpu = proto::kUnknownCpu;          // it ran on last
};

struct HostCount {
  int64_t start = 0, end = 0;
  int64_t throttled_ns = 0, throttled_periods = 0;
  int64_t others_ran_ns = 0, others_queued_ns = 0;  // of threads that Python does not know
  int64_t threads = 0;
  int64_t cpu_pressure_ns = 0, io_pressure_ns = 0, memory_pressure_ns = 0;  // of the machine
  std::string cpus;  // that the process may use: "0-3,8"
};

// "0-3,8" as numbers in order; empty where it is not such a list.
std::vector<uint32_t> CpusIn(std::string_view list);

class HostCounts {
 public:
  explicit HostCounts(const Trace& trace);

  const std::vector<ThreadCount>& threads() const { return threads_; }
  const std::vector<HostCount>& host() const { return host_; }
  // Bits of proto::HostLack.
  uint32_t lacks() const { return lacks_; }
  bool Lacks(proto::HostLack what) const { return (lacks_ & what) != 0; }
  // None where the machine has one node, or nobody told.
  std::optional<uint32_t> NodeOf(uint32_t cpu) const;
  // Of a device, by its address on the PCI bus.
  std::optional<uint32_t> NodeOfBus(std::string_view bus) const;
  // The CPUs that the process may use, as it was told last.
  std::vector<uint32_t> Cpus() const;

 private:
  std::vector<ThreadCount> threads_;
  std::vector<HostCount> host_;
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> nodes_;  // with their CPUs
  std::vector<std::pair<uint32_t, std::string>> bus_nodes_;        // with a device's address
  uint32_t lacks_ = 0;
};

// Worked out once and kept in the trace's memo.
const HostCounts& CountsOf(const Trace& trace);

}  // namespace ranktap::collector

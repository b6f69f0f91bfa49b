// The kernels that a launch was waiting for, delivered or counted as lost, until the process ends
// without the rest.
// Runs on: the drain thread; GiveUp on the exiting thread or one that pauses ours.
// May not: call CUPTI.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/sources/cupti/cupti_abi.h"

namespace ranktap::agent::cupti {

class KernelCount {
 public:
  // False: the process has declared it lost with all that it had not seen by then. Kernels in a
  // graph, or that a kernel launched, are not among those: no call of ours stands for them.
  [[nodiscard]] bool Count(const Record& record, uint32_t cupti_version) {
    if (record.kind != Kind::kConcurrentKernel) return true;
    const auto& kernel = reinterpret_cast<const KernelRecord&>(record);
    const bool by_device = cupti_version >= kVersion130 && kernel.device_launched != 0;
    if (kernel.graph != 0 || by_device) return true;
    return (count_.fetch_add(1) & kGaveUp) == 0;
  }
  void Add(uint64_t kernels) { count_.fetch_add(kernels); }

  // After GiveUp more than any number of launches.
  uint64_t count() const { return count_.load(); }
  // Returns count() as it was. None is delivered from here on.
  [[nodiscard]] uint64_t GiveUp() { return count_.fetch_or(kGaveUp); }

 private:
  static constexpr uint64_t kGaveUp = uint64_t{1} << 63;

  std::atomic<uint64_t> count_{0};
};

}  // namespace ranktap::agent::cupti

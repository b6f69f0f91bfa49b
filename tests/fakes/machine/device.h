// What a simulated device says about itself: the properties of an H100 SXM, under a name that
// nobody takes for one.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

inline constexpr int kDriverVersion = 13000;
inline constexpr uint32_t kMultiprocessors = 132;
inline constexpr uint32_t kThreadsPerMultiprocessor = 2048;

uint64_t DeviceMemoryBytes();
DeviceFacts FactsOf(uint32_t device);
// 0 for attributes the device lacks. False for a number CUDA does not know either.
bool DeviceAttribute(CUdevice_attribute attribute, uint32_t device, int* value);

// How long things take. Deterministic: the same shape takes the same time in every run.
uint64_t KernelDuration(const KernelShape& shape);
uint64_t CopyDuration(const CopyShape& shape);
uint64_t MemsetDuration(uint64_t bytes);
// From the call to the earliest start on an idle device.
uint64_t LaunchLatency();

}  // namespace ranktap::standin

// Tells which kernels communicate, by what they are called and by who launched them.
#pragma once

#include <string_view>

namespace ranktap::collector {

// Knows the kernels of NCCL, RCCL, MSCCL++, NVSHMEM, DeepEP and torch's symmetric memory, and the
// all-reduce kernels that inference engines bring along. `name` is readable (ReadableKernelName).
bool IsCommunicationKernel(std::string_view name);

// An operator whose own kernels communicate: c10d's, those of symmetric memory, engines' own. A
// kernel that it launches through another operator (a copy, a product) is that one's.
bool IsCommunicationOperator(std::string_view name);

}  // namespace ranktap::collector

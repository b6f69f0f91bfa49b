// FLOPs of an operator from the shapes of its inputs, by torch's own formulas
// (torch/csrc/profiler/util.cpp, computeFlops): conv2d, mm, addmm, bmm, baddbmm, mul, add.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranktap::collector {

// `shapes`, `values`: Operators::shapes and ::values. 0: no formula, or the inputs are not known.
int64_t OpFlops(std::string_view name, std::string_view shapes, std::string_view values);

}  // namespace ranktap::collector

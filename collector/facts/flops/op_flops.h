// The registry of formulas: arithmetic of an operator from the shapes of its inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "collector/facts/flops/flop_count.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

enum class FlopRule : uint8_t {
  // torch/csrc/profiler/util.cpp, computeFlops (with_flops=True): conv2d, mm, addmm, bmm, baddbmm,
  // mul, add; each by itself.
  kProfiler,
  // torch.utils.flop_counter.FlopCounterMode: matrix products, convolutions and fused attention,
  // forward and backward; 2 a multiply-add, everything else 0.
  kCounter,
  // deepspeed/profiling/flops_profiler/profiler.py (0.19): functions of torch.nn.functional and the
  // matrix products of torch and Tensor. A trace cannot tell torch.add(a, b), which DeepSpeed
  // counts, from a + b, which it does not: neither is counted here. Nor can it tell
  // interpolate(size=9), which counts as 9, from size=(9, 9), which counts as 81 and does so here.
  // einsum is told from the products inside, which are in the order that numpy calls optimal where
  // there are two operands.
  kDeepSpeed,
  // The DeepSpeed of its published samples (BERT-Large: 3139.93 GMACs, Megatron: 41271.95): torch's
  // matrix products were not patched, so attention's are missing, and softmax counts as
  // multiply-accumulates. It counts only linear of the other functions.
  kDeepSpeedOld,
};

// `shapes`, `values`: Operators::shapes and ::values. nullopt: the rule has no formula for it, or
// the inputs are not known.
std::optional<FlopCount> CountOp(FlopRule rule, std::string_view name, std::string_view shapes,
                                 std::string_view values);

bool HasFormula(FlopRule rule, std::string_view name);

// For each operator of the trace its own share: with kCounter and kDeepSpeed 0 where an operator
// around it is counted already. KnownOf(trace) goes before the
// formulas.
std::vector<FlopCount> CountFlops(const Trace& trace, FlopRule rule);

}  // namespace ranktap::collector

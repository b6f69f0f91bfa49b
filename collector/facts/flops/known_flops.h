// Arithmetic that no formula has: by what a person says, or by the operators that a generated
// kernel fuses. A part of op_flops.h.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "collector/facts/flops/flop_count.h"
#include "collector/facts/flops/op_flops.h"
#include "collector/trace/known_arithmetic.h"

namespace ranktap::collector {

class KnownFlops {
 public:
  // nullptr: nothing is known.
  explicit KnownFlops(const KnownArithmetic* known);

  // False: the formulas decide about an operator of this name.
  bool Has(std::string_view name) const;
  bool IsSaid(std::string_view name) const { return said_.contains(name); }
  // nullopt: what is known does not tell its FLOPs.
  std::optional<FlopCount> Of(FlopRule rule, std::string_view name, std::string_view shapes,
                              std::string_view values) const;
  // The kernels of that name, of operators too: "graph_0_cpp_fused_gelu_0". Empty: none.
  const std::vector<const GeneratedKernel*>& Kernels(std::string_view name) const;
  // One for each element of what a fused operator reads or writes, whichever is more; products
  // count as kCounter does; what moves elements counts nothing. nullopt: some operator's size is
  // not known, or kernels of one name differ. `shapes`: of a recorded call; empty: not recorded.
  std::optional<int64_t> Operations(std::string_view name, std::string_view shapes) const;

 private:
  // The kernels of that name that a call with these shapes may have been.
  std::vector<GeneratedKernel> Called(std::string_view name, std::string_view shapes) const;

  std::map<std::string_view, std::string_view> said_;
  std::map<std::string_view, std::vector<const GeneratedKernel*>> generated_;
};

// "cpp_fused_gelu_0" of "graph_0_cpp_fused_gelu_0", as PyTorch's C++ kernels call their operators.
std::string_view GeneratedName(std::string_view name);

}  // namespace ranktap::collector

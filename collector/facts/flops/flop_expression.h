// The formula that a person gives for an operator: `--flops-of
// mylib::attend='4*numel(in0)*in1[2]'`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "collector/facts/flops/op_inputs.h"

namespace ranktap::collector {

// + - * /, parentheses and numbers; in0[1], in0[-1]: a dimension of an input; numel(in0): its
// elements. nullopt: the inputs do not have what the expression names, or the result is no count.
std::optional<int64_t> EvaluateFlops(std::string_view expression, const OpInputs& in);

// The sentence about an expression that nobody can read; nullopt: it is one.
std::optional<std::string> WhatIsWrong(std::string_view expression);

}  // namespace ranktap::collector

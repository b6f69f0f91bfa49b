// The name that a person may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace ranktap::collector {

// "; did you mean 'kernels'?" where one of `known` is a slip or two of the fingers away from
// `word`, or is begun by it; else "".
std::string DidYouMean(std::string_view word, std::span<const std::string_view> known);

}  // namespace ranktap::collector

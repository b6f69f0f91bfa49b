// Sizes that a compiler's files write as symbols ("s0"), and what a recorded call says they were. A
// part of known_flops.h.
#pragma once

#include <optional>
#include <string_view>

#include "collector/trace/known_arithmetic.h"

namespace ranktap::collector {

// The kernel with numbers for its symbols, from the shapes of a recorded call's inputs. nullopt: it
// is another kernel, as no choice of its symbols has these shapes. A fused operator with a size
// that stays unknown has no shapes in it. `shapes` empty: nothing was recorded.
std::optional<GeneratedKernel> WithSizes(const GeneratedKernel& kernel, std::string_view shapes);

}  // namespace ranktap::collector

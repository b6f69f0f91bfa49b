// What programs call the range of a training step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ranktap::collector {

// "step", "train_step", "iteration 7", "ProfilerStep#3", without its number; empty: not like one.
std::string StepLikeName(std::string_view name);

// The number that the name ends with.
int64_t NumberIn(std::string_view name, int64_t otherwise);

}  // namespace ranktap::collector

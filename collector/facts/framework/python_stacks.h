// Python stacks as torch's key_averages(group_by_stack_n) shows them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ranktap::collector {

// The frames of "a.py(3): f;b.py(9): g", the innermost first, at most `most`, without those that
// PyTorch leaves out.
std::vector<std::string> InnermostFrames(std::string_view stack, size_t most);

// "a.py(3): f; b.py(9): g"
std::string Joined(const std::vector<std::string>& frames);

}  // namespace ranktap::collector

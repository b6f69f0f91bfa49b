#include "collector/facts/framework/python_stacks.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ranktap::collector {
namespace {

// torch/autograd/profiler_util.py, _filter_stack_entry.
bool IsHiddenFrame(std::string_view frame) {
  constexpr std::pair<std::string_view, std::string_view> kHidden[] = {
      {"autograd/__init__", "_make_grads"},
      {"autograd/__init__", "backward"},
      {"torch/tensor", "backward"},
      {"_internal/common_utils", "prof_callable"},
      {"_internal/common_utils", "prof_func_call"},
      {"_internal/common_utils", "prof_meth_call"}};
  return std::any_of(std::begin(kHidden), std::end(kHidden), [frame](const auto& hidden) {
    return frame.find(hidden.first) != frame.npos && frame.find(hidden.second) != frame.npos;
  });
}

}  // namespace

std::vector<std::string> InnermostFrames(std::string_view stack, size_t most) {
  std::vector<std::string> frames;
  while (!stack.empty() && frames.size() < most) {
    const size_t end = std::min(stack.find(';'), stack.size());
    if (end > 0 && !IsHiddenFrame(stack.substr(0, end))) frames.emplace_back(stack.substr(0, end));
    stack.remove_prefix(std::min(end + 1, stack.size()));
  }
  return frames;
}

std::string Joined(const std::vector<std::string>& frames) {
  std::string text;
  for (const std::string& frame : frames) text += (text.empty() ? "" : "; ") + frame;
  return text;
}

}  // namespace ranktap::collector

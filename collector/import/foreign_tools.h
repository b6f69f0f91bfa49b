// Tools whose files people give us in place of torch.profiler's: named, with what to do instead.
#pragma once

#include <string>
#include <string_view>

namespace ranktap::collector {

struct ForeignTool {
  std::string_view name;     // "JAX's profiler"
  std::string_view instead;  // "record PyTorch with torch.profiler"
};

// By a file's first bytes and its name; nullptr: none of them.
const ForeignTool* ForeignToolOfFile(std::string_view head, std::string_view path);

// By what a Chrome trace calls a process: as its name, or in place of its id. nullptr: none of
// them.
const ForeignTool* ForeignToolOfProcess(std::string_view name);

// "is of JAX's profiler, which ranktap does not read: ..."
std::string WhyNotRead(const ForeignTool& tool);

}  // namespace ranktap::collector

// Runs on: see memory_limit.h.  May not: believe that a file is there.
#include "agent/core/memory_limit.h"

#include <algorithm>
#include <cstdlib>

#include "agent/core/control_groups.h"

namespace ranktap::agent {
namespace {

// "max" and files that are not there are no limit.
uint64_t NumberIn(const std::string& path) {
  const std::string text = ReadWholeFile(path);
  const bool is_number = !text.empty() && text[0] >= '0' && text[0] <= '9';
  return is_number ? std::strtoull(text.c_str(), nullptr, 10) : UINT64_MAX;
}

}  // namespace

uint64_t MemoryLimit(const std::string& proc, const std::string& groups) {
  uint64_t least = UINT64_MAX;
  for (const ControlGroup& group : ControlGroupsOf("memory", proc, groups)) {
    const char* const file = group.is_second_version ? "/memory.max" : "/memory.limit_in_bytes";
    least = std::min(least, NumberIn(group.folder + file));
  }
  return least;
}

}  // namespace ranktap::agent

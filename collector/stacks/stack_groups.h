// The stacks of many processes with equal ones together: "15 ranks here, rank 13 there".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/stacks/process_stacks.h"

namespace ranktap::collector {

struct RankStacks {
  std::optional<uint32_t> rank;
  ProcessStacks stacks;
};

struct StackGroup {
  std::vector<size_t> ranks;  // positions in the list, in order
  std::string thread;         // "main thread", "thread pt_autograd_0"
  const ThreadStack* stack = nullptr;
  std::optional<int64_t> cuda_call_ns;  // the longest
  std::vector<pid_t> threads;
};

// Groups of threads of one name that stand at the same place and do the same: main threads first,
// in each kind the largest group first. Points into `processes`.
std::vector<StackGroup> GroupStacks(const std::vector<RankStacks>& processes);

// "15 ranks (0-12, 14, 15)", "rank 13", "process 4711".
std::string NameGroup(const std::vector<RankStacks>& processes, const std::vector<size_t>& members);

// For people.
std::string FormatStacks(const std::vector<RankStacks>& processes);

}  // namespace ranktap::collector

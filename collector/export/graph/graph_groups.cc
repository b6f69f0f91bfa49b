#include "collector/export/graph/graph_groups.h"

#include <algorithm>

#include "collector/facts/collectives.h"

namespace ranktap::collector {
namespace {

bool IsDecimal(const std::string& text) {
  constexpr size_t kMostDigits = 9;
  return !text.empty() && text.size() <= kMostDigits &&
         std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

GraphGroups::GraphGroups(const Run& run) {
  for (const Trace& trace : run.traces)
    world_ = std::max(world_, trace.info.world_size.value_or(0));
  if (world_ == 0) world_ = static_cast<uint32_t>(run.traces.size());
  for (const Trace& trace : run.traces) {
    for (const Collective& call : trace.collectives) Add(call.group, call.group_size);
    for (const ProcessGroup& group : trace.process_groups) {
      if (IsDecimal(group.name) && group.name != "0" && !group.ranks.empty()) {
        members_[group.name] = group.ranks;
      }
    }
  }
  for (const CollectiveRun& run : MatchDeviceOrHostCollectives(run))
    Add(run.group(), run.group_size);
  // Numbers of groups with other names begin behind those that torch gave.
  for (const auto& [name, number] : numbers_) {
    if (IsDecimal(number)) next_ = std::max(next_, static_cast<uint32_t>(std::stoul(number)) + 1);
  }
  for (const auto& [number, ranks] : members_) {
    next_ = std::max(next_, static_cast<uint32_t>(std::stoul(number)) + 1);
  }
  for (auto& [name, number] : numbers_) {
    if (number.empty()) number = std::to_string(next_++);
  }
}

void GraphGroups::Add(const std::string& name, uint32_t size) {
  if (name.empty()) return;
  std::string& number = numbers_[name];
  if (!number.empty()) return;
  if (IsDecimal(name)) number = name;
  // A group that facts/collectives calls "group 3", or one of all ranks.
  if (name.starts_with("group ") && IsDecimal(name.substr(6))) number = name.substr(6);
  if (number.empty() && size != 0 && size == world_) number = "0";
}

std::string GraphGroups::NumberOf(const std::string& name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? "0" : found->second;
}

std::vector<uint32_t> GraphGroups::RanksOf(const std::string& number) const {
  if (const auto found = members_.find(number); found != members_.end()) return found->second;
  std::vector<uint32_t> ranks;
  for (uint32_t rank = 0; number == "0" && rank < world_; ++rank) ranks.push_back(rank);
  return ranks;
}

GraphGroups::Members GraphGroups::WithWorld() const {
  Members members = members_;
  if (world_ > 1) members["0"] = RanksOf("0");
  return members;
}

GraphGroups::Members GraphGroups::ForSimulators() const {
  Members members = members_;
  const std::vector<uint32_t> world = RanksOf("0");
  const bool is_there =
      std::ranges::any_of(members_, [&](const auto& group) { return group.second == world; });
  if (world_ > 1 && !is_there) members[std::to_string(next_)] = world;
  return members;
}

}  // namespace ranktap::collector

// Memory that grows with each step: what a step allocates and nobody gives back.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/framework/memory_blocks.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"
#include "collector/trace/device_label.h"

namespace ranktap::collector {
namespace {

// A variable of the loop holds the last step's output until the next one replaces it, and a
// pipeline one more: what the last two steps leave tells nothing.
constexpr size_t kMayBeHeld = 2;
constexpr size_t kLeastSteps = 3;           // that grow, each
constexpr int64_t kLeastBytes = 64 * 1024;  // by each

// The longest row of steps one after another in each of which memory was recorded: between two
// windows nobody saw what was given back.
std::vector<Step> StepsInARow(const Trace& trace, const StepList& steps) {
  const TimeColumn& starts = trace.allocations.start;
  std::vector<Step> longest, row;
  for (const Step& step : steps.list) {
    const auto first = std::lower_bound(starts.begin(), starts.end(), step.start);
    const bool is_watched = first != starts.end() && *first < step.end;
    if (!is_watched || (!row.empty() && row.back().number + 1 != step.number)) row.clear();
    if (is_watched) row.push_back(step);
    if (row.size() > longest.size()) longest = row;
  }
  return longest;
}

bool IsOfModel(const HeldBlock& block) {
  return block.category == MemoryCategory::kParameter ||
         block.category == MemoryCategory::kGradient ||
         block.category == MemoryCategory::kOptimizerState;
}

struct Growth {
  int64_t bytes = 0;  // of the step that leaves least
  std::string where;  // most of it
};

Growth GrowthOf(const RankFacts& rank, const DeviceMemory& memory, const std::vector<Step>& steps) {
  const int64_t end = steps.back().end;
  std::vector<int64_t> left(steps.size() - kMayBeHeld);
  std::map<uint32_t, int64_t> by_operator;  // name; the place of its last block
  std::map<uint32_t, const HeldBlock*> last;
  for (const HeldBlock& block : memory.blocks) {
    const bool is_held = block.alive || block.end > end;
    if (!is_held || IsOfModel(block) || block.op == kNone) continue;
    const auto at = std::ranges::upper_bound(steps, block.start, {}, &Step::start);
    const auto step = static_cast<size_t>(at - steps.begin());
    if (step == 0 || step > left.size() || block.start >= steps[step - 1].end) continue;
    left[step - 1] += block.bytes;
    const uint32_t name = rank.trace().operators.name[block.op];
    by_operator[name] += block.bytes;
    last[name] = &block;
  }
  Growth growth{.bytes = *std::ranges::min_element(left)};
  const auto most =
      std::ranges::max_element(by_operator, {}, [](const auto& of) { return of.second; });
  if (most == by_operator.end()) return growth;
  const HeldBlock& block = *last[most->first];
  growth.where =
      rank.PlaceAt(rank.trace().operators.writer[block.op], rank.trace().operators.start[block.op]);
  if (!block.module.empty()) growth.where += " in " + block.module;
  return growth;
}

}  // namespace

Answer FindMemoryGrowth(const RankFacts& rank) {
  const Trace& trace = rank.trace();
  const StepList& list = rank.waterfall().steps;
  if (HeldMemory(trace).empty()) return CannotTell("the allocator's memory is not recorded");
  if (list.is_call || list.is_period) return CannotTell("nothing tells the steps of a training");
  const std::vector<Step> steps = StepsInARow(trace, list);
  if (steps.size() < kLeastSteps + kMayBeHeld) {
    return CannotTell("the framework's memory is recorded in fewer than five steps in a row");
  }
  Answer answer;
  for (const DeviceMemory& memory : HeldMemory(trace)) {
    Growth growth = GrowthOf(rank, memory, steps);
    if (growth.bytes < kLeastBytes) continue;
    const std::string device =
        memory.device == kNone ? "the CPU" : DeviceLabel(trace, memory.device);
    answer.insights.push_back(
        {.device = memory.device,
         .finding =
             fmt::format("Memory on {} grows with each step: steps {} to {} leave at least "
                         "{} each, which the program still holds when step {} ends.",
                         device, steps.front().number, steps[steps.size() - kMayBeHeld - 1].number,
                         FormatBytes(static_cast<uint64_t>(growth.bytes)), steps.back().number),
         .where = std::move(growth.where),
         .count = static_cast<int64_t>(steps.size() - kMayBeHeld)});
  }
  return answer;
}

}  // namespace ranktap::collector

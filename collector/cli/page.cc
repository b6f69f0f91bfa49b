#include "collector/cli/page.h"

#include <algorithm>

#include "collector/export/weighted_stacks.h"
#include "collector/report/page/page.h"
#include "collector/symbols/resolve_stacks.h"

namespace ranktap::collector {
namespace {

// More than a screen tells apart.
constexpr size_t kMostStacks = 4'000;

int64_t TimeOf(const PageFlames::Stack& stack) {
  return stack.weights[static_cast<size_t>(StackWeight::kCall)] +
         stack.weights[static_cast<size_t>(StackWeight::kOperator)] +
         stack.weights[static_cast<size_t>(StackWeight::kGpu)];
}

PageFlames AddUpStacks(const Run& run) {
  WeightedStacks stacks;
  for (const Trace& trace : run.traces) AddStacks(trace, {}, &stacks);
  PageFlames flames;
  for (const StackFrame& frame : stacks.frames()) flames.frames.push_back(frame.function);
  for (const auto& [frames, weights] : stacks.stacks()) flames.stacks.push_back({frames, weights});
  std::stable_sort(flames.stacks.begin(), flames.stacks.end(),
                   [](const auto& a, const auto& b) { return TimeOf(a) > TimeOf(b); });
  if (flames.stacks.size() > kMostStacks) flames.stacks.resize(kMostStacks);
  return flames;
}

}  // namespace

std::string MakePage(const ReportOptions& options, const std::vector<std::string>& symbols,
                     const std::vector<std::string>& notes, Run* run, const PageLinks& links) {
  ResolveStacks(symbols, run);
  return FormatPage(*run, {.options = options,
                           .notes = notes,
                           .flames = AddUpStacks(*run),
                           .runs_link = links.runs,
                           .perfetto_link = links.perfetto});
}

}  // namespace ranktap::collector

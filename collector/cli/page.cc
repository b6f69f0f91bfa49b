#include "collector/cli/page.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "collector/export/weighted_stacks.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/report/page/page.h"
#include "collector/report/text/name_cut.h"
#include "collector/symbols/resolve_stacks.h"

namespace ranktap::collector {
namespace {

// More than a screen tells apart.
constexpr size_t kMostStacks = 4'000;

int64_t TimeOf(const PageFlames::Stack& stack) {
  return stack.weights[static_cast<size_t>(StackWeight::kCall)] +
         stack.weights[static_cast<size_t>(StackWeight::kOperator)] +
         stack.weights[static_cast<size_t>(StackWeight::kGpu)] +
         stack.weights[static_cast<size_t>(StackWeight::kSampled)];
}

// Lines of Python are apart, and so are their names.
std::string NameOf(const WeightedFrame& frame) {
  if (frame.line == 0 || !frame.file.ends_with(".py")) return frame.function;
  return fmt::format("{} ({}:{})", frame.function, ShortFile(frame.file), frame.line);
}

PageFlames AddUpStacks(const Run& run) {
  WeightedStacks stacks;
  for (const Trace& trace : run.traces) AddStacks(trace, {}, &stacks);
  PageFlames flames;
  for (const WeightedFrame& frame : stacks.frames()) flames.frames.push_back(NameOf(frame));
  for (const auto& [key, weights] : stacks.stacks()) {
    flames.stacks.push_back({key.frames, weights});
  }
  std::stable_sort(flames.stacks.begin(), flames.stacks.end(),
                   [](const auto& a, const auto& b) { return TimeOf(a) > TimeOf(b); });
  if (flames.stacks.size() > kMostStacks) flames.stacks.resize(kMostStacks);
  return flames;
}

std::string PlaceOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::absolute(path, error);
  return error || path.empty() ? path : place.lexically_normal().string();
}

// Two lines of a column on a laptop's screen would be twice as many.
std::vector<std::string> ShortNames(const std::vector<std::string>& names) {
  return CutNames(names, 60);
}

}  // namespace

std::string MakePage(const ReportOptions& options, const std::vector<std::string>& symbols,
                     const std::vector<std::string>& notes, const std::vector<std::string>& inputs,
                     Run* run, const PageLinks& links) {
  ResolveStacks(symbols, run);
  return FormatPage(*run, {.options = options,
                           .notes = notes,
                           .flames = AddUpStacks(*run),
                           .runs_link = links.runs,
                           .perfetto_link = links.perfetto,
                           .inputs = inputs,
                           .place = PlaceOf(run->path),
                           .shorten = ShortNames});
}

std::string MakeDiffPage(const Run& before, const Run& after,
                         const std::vector<std::string>& notes) {
  return FormatDiffPage(before, after, notes, ShortNames);
}

}  // namespace ranktap::collector

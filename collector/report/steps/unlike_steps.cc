#include "collector/report/steps/unlike_steps.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "collector/facts/causes/host_places.h"
#include "collector/facts/causes/late_module.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/device_steps.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/samples/late_line.h"
#include "collector/facts/shared_clock.h"
#include "collector/facts/step_levels.h"
#include "collector/facts/steps.h"
#include "collector/report/cells.h"
#include "collector/report/claims/cross_checks.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/verdict_words.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostNumbers = 5;

// The mean time of a part's steps (OnlySteps) by what it goes to.
std::map<std::string, int64_t> TimesOf(const Run& run, uint32_t t, const RankWaterfall& part) {
  std::map<std::string, int64_t> times;
  for (size_t i = 0; i < part.times.size(); ++i) {
    if (part.steps.list[i].warm_up) continue;
    for (size_t c = 0; c < kCauses; ++c) {
      const auto cause = static_cast<Cause>(c);
      if (part.on_host && cause == Cause::kHost) continue;  // by place
      const std::string_view words = part.on_host ? DescribeHostsTime(cause) : NameOf(cause);
      times[std::string(words)] += part.times[i][c] / static_cast<int64_t>(part.counted);
    }
  }
  if (!part.on_host) return times;
  for (const HostPlace& place : PlacesOfHost(run, t, part)) times[place.where] += place.ns;
  return times;
}

// What has more than half of the difference, and where: "in the forward pass (most in Net.experts),
// at train.py:97 (main)". Empty: nothing has.
std::string MostOfDifference(const Run& run, uint32_t t, const StepLevels& levels) {
  const bool some_are_long = levels.some_ns > levels.others_ns;
  const RankWaterfall& all_steps = ComputeWaterfalls(run)[t];
  const RankWaterfall longer = OnlySteps(all_steps, some_are_long ? levels.some : levels.others);
  const RankWaterfall shorter = OnlySteps(all_steps, some_are_long ? levels.others : levels.some);
  std::map<std::string, int64_t> more = TimesOf(run, t, longer);
  for (const auto& [what, ns] : TimesOf(run, t, shorter)) more[what] -= ns;
  int64_t all = 0;
  for (const auto& [what, ns] : more) all += ns;
  const auto most = std::ranges::max_element(
      more, [](const auto& a, const auto& b) { return a.second < b.second; });
  std::string text = most == more.end() || most->second * 2 < all ? "" : most->first;
  const std::string place = PlaceOfLongSteps(run.traces[t], longer, shorter, all);
  if (!place.empty()) text = text.empty() ? "in " + place : text + " (most in " + place + ")";
  const std::string line = LineOfLongSteps(run.traces[t], longer, shorter, all / 2).text;
  return line.empty() ? text : fmt::format("{}{}at {}", text, text.empty() ? "" : ", ", line);
}

std::string Numbers(const StepList& steps, const std::vector<size_t>& positions) {
  std::string text;
  for (size_t i = 0; i < std::min(positions.size(), kMostNumbers); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", steps.list[positions[i]].number);
  }
  return text + (positions.size() > kMostNumbers ? ", ..." : "");
}

std::string Stretch(const StepList& steps, const std::vector<size_t>& positions) {
  return fmt::format("{}s {} to {}", steps.noun(), steps.list[positions.front()].number,
                     steps.list[positions.back()].number);
}

std::string DescribeChange(const Run& run, uint32_t t, const StepLevels& levels) {
  const StepList& steps = ComputeWaterfalls(run)[t].steps;
  const std::string most = MostOfDifference(run, t, levels);
  return fmt::format("{} take {}, {} {} (medians){}{}. ", Stretch(steps, levels.some),
                     FormatNs(levels.some_ns), Stretch(steps, levels.others),
                     FormatNs(levels.others_ns), most.empty() ? "" : "; the difference is ", most);
}

// By step: whether we recorded its operators, of which most of our cost comes. Empty: of most
// steps or of none.
std::vector<bool> SlowedByUs(const Trace& trace, const StepList& steps) {
  if (!trace.is_ours()) return {};
  std::vector<bool> recorded(steps.list.size());
  for (size_t i = 0; i < trace.operators.size(); ++i) {
    const int64_t step = StepIndexAt(steps, trace.operators.start[i]);
    if (step >= 0) recorded[static_cast<size_t>(step)] = true;
  }
  const auto count = static_cast<size_t>(std::ranges::count(recorded, true));
  return count == 0 || count * 2 > recorded.size() ? std::vector<bool>() : recorded;
}

std::string DescribeFewLong(const Run& run, uint32_t t, const StepLevels& levels) {
  const StepList& steps = ComputeWaterfalls(run)[t].steps;
  const std::string most = MostOfDifference(run, t, levels);
  const size_t few = levels.some.size(), all = few + levels.others.size();
  return fmt::format(
      "{} of {} {}s ({}) {} {} and {} {:.1f} % of the time{}{}; the others take {} (medians). ",
      few, all, steps.noun(), Numbers(steps, levels.some), few == 1 ? "takes" : "take",
      FormatNs(levels.some_ns), few == 1 ? "has" : "have", 100 * levels.share,
      most.empty() ? "" : ", mostly ", most, FormatNs(levels.others_ns));
}

// "Rank 0 made 10 steps and rank 1 made 30: for 470.0 ms rank 0 had none left. "
std::string DescribeUnlikeRanks(const Run& run) {
  std::string text = RanksMakeUnlikeSteps(run);
  if (text.empty()) return "";
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  uint32_t least = kNone, most = kNone;
  for (uint32_t t = 0; t < waterfalls.size(); ++t) {
    const size_t steps = waterfalls[t].steps.list.size();
    if (steps == 0) continue;
    if (least == kNone || steps < waterfalls[least].steps.list.size()) least = t;
    if (most == kNone || steps > waterfalls[most].steps.list.size()) most = t;
  }
  if (least == kNone) return "";
  const SharedClock& clock = SharedClockOf(run);
  const int64_t alone = clock.At(most, waterfalls[most].steps.list.back().end) -
                        clock.At(least, waterfalls[least].steps.list.back().end);
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (!clock.is_known() || alone <= 0) return text + ". ";
  return fmt::format("{}: for {} {} had none left. ", text, FormatNs(alone),
                     RankName(run.traces[least]));
}

}  // namespace

std::string DescribeLongestStep(const Run& run, uint32_t t) {
  constexpr double kLeastMore = 0.5;  // of the median step
  constexpr size_t kLeastOthers = 3;
  const StepList& steps = DetectSteps(run.traces[t]);
  if (steps.source.empty() || steps.is_period) return "";
  const std::vector<Step>& list = StepsOnDevice(run.traces[t]).list;
  const std::vector<bool> recorded = SlowedByUs(run.traces[t], steps);
  std::vector<double> lengths;
  size_t longest = list.size();
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].warm_up) continue;
    lengths.push_back(static_cast<double>(list[i].length()));
    if (longest == list.size() || list[i].length() > list[longest].length()) longest = i;
  }
  const double median = Median(std::move(lengths));
  StepLevels levels;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].warm_up || static_cast<double>(list[i].length()) > (1 + kLeastMore) * median)
      continue;
    levels.others.push_back(i);
  }
  const bool is_alike = longest == list.size() || std::ranges::count(levels.others, longest) > 0;
  if (is_alike || levels.others.size() < kLeastOthers || (!recorded.empty() && recorded[longest]))
    return "";
  levels.some = {longest};
  levels.some_ns = list[longest].length();
  levels.others_ns = static_cast<int64_t>(median);
  const std::string most = MostOfDifference(run, t, levels);
  return fmt::format("{} {} takes {} more than the median{}{}", steps.noun(), list[longest].number,
                     FormatNs(levels.some_ns - levels.others_ns), most.empty() ? "" : ", mostly ",
                     most);
}

std::string DescribeUnlikeSteps(const Run& run) {
  if (std::string ranks = DescribeUnlikeRanks(run); !ranks.empty()) return ranks;
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  for (uint32_t t = 0; t < waterfalls.size(); ++t) {
    if (waterfalls[t].counted == 0) continue;
    const StepLevels levels =
        LevelsOf(waterfalls[t].steps, SlowedByUs(run.traces[t], waterfalls[t].steps));
    if (levels.kind == StepLevels::kAlike) continue;
    std::string text = levels.kind == StepLevels::kChange ? DescribeChange(run, t, levels)
                                                          : DescribeFewLong(run, t, levels);
    if (run.traces.size() > 1) return fmt::format("On {}, {}", RankName(run.traces[t]), text);
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    return text;
  }
  return "";
}

}  // namespace ranktap::collector

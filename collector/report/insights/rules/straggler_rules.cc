// A rank that the others wait for, and a device that computes more slowly than its like.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>

#include "collector/facts/causes/stragglers.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/collectives.h"
#include "collector/facts/numbers/describe.h"
#include "collector/report/cells.h"
#include "collector/report/claims/claim.h"
#include "collector/report/claims/late_rank.h"
#include "collector/report/claims/mean_step.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"
#include "collector/report/steps/verdict_words.h"
#include "collector/trace/device_counters.h"

namespace ranktap::collector {
namespace {

// Boards of one kind differ by 2 to 3 % in clock under the same load.
constexpr double kSlowClock = 0.95;
constexpr size_t kLeastDevices = 3;   // of fewer nobody can say which is the odd one
constexpr int64_t kLeastSamples = 3;  // one a second

constexpr uint32_t AllCauses() { return (1u << kCauses) - 1; }

Insight AboutStraggler(const Run& run, const RankFacts& rank, const Straggler& straggler,
                       const MeanStep& mean) {
  const int64_t wait = ExposedWaitFor(run, StragglersOf(run));
  std::string finding =
      fmt::format("The other ranks wait {}{} ({}) for {}, which comes last to {} of {} collectives",
                  FormatNs(wait), mean.OfWhat(), FormatShare(wait, mean.ns),
                  RankName(run.traces[straggler.trace]), FormatCount(straggler.last_arrivals),
                  FormatCount(straggler.collectives));
  Saving saving{.moments = rank.counted(), .causes = AllCauses(), .most_ns = wait};
  if (straggler.cause) {
    finding += " and spends " + DescribeExcessOf(run, straggler, "they do");
    saving.causes = BitOf(*straggler.cause);
    if (straggler.cause == Cause::kHost) saving.causes |= BitOf(Cause::kSync);  // as TimeOf does
    saving.most_ns = std::min(saving.most_ns, straggler.excess_ns);
  }
  finding += DescribeLateLine(run, straggler);
  return {.trace = straggler.trace,
          .finding = finding + ".",
          .count = straggler.last_arrivals,
          .lost_ns = wait,
          .saving = std::move(saving)};
}

struct Clock {
  uint32_t trace = 0, device = 0;
  double mhz = 0;
};

// The mean SM clock of each device, over samples in which it was in use.
std::vector<Clock> MeanClocks(const Run& run) {
  const std::string_view clock_name = kDeviceCounters[static_cast<size_t>(DeviceCounter::kSmClock)];
  const std::string_view use_name =
      kDeviceCounters[static_cast<size_t>(DeviceCounter::kUtilisation)];
  std::vector<Clock> clocks;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    const CounterSamples& samples = run.traces[t].counters;
    std::map<std::pair<uint32_t, int64_t>, bool> in_use;  // by device and moment
    for (size_t i = 0; i < samples.size(); ++i) {
      if (run.traces[t].dictionary.String(samples.name[i]) != use_name) continue;
      in_use[{samples.device[i], samples.start[i]}] = samples.value[i] > 0;
    }
    std::map<uint32_t, std::pair<double, int64_t>> sums;
    for (size_t i = 0; i < samples.size(); ++i) {
      if (run.traces[t].dictionary.String(samples.name[i]) != clock_name) continue;
      const auto use = in_use.find({samples.device[i], samples.start[i]});
      if (use != in_use.end() && !use->second) continue;
      auto& [sum, count] = sums[samples.device[i]];
      sum += samples.value[i];
      ++count;
    }
    for (const auto& [device, sum] : sums) {
      if (device == kNone || sum.second < kLeastSamples) continue;
      clocks.push_back({t, device, sum.first / static_cast<double>(sum.second)});
    }
  }
  return clocks;
}

// Boards compare only where all have one name: others have other clocks.
bool AreAllAlike(const Run& run) {
  std::string name;
  for (const Trace& trace : run.traces) {
    for (const v1::Device& device : trace.hello.devices()) {
      if (name.empty()) name = device.name();
      if (device.name() != name) return false;
    }
  }
  return true;
}

}  // namespace

Answer FindStraggler(const Run& run) {
  const auto is_of_several = [](const CollectiveRun& call) { return call.members.size() > 1; };
  const bool is_shared = run.traces.size() > 1 &&
                         std::ranges::any_of(MatchDeviceOrHostCollectives(run), is_of_several);
  if (!is_shared) return CannotTell("no collective of several recorded ranks is known");
  // The costliest alone: the others may wait for it themselves.
  const std::vector<Straggler>& stragglers = StragglersOf(run);
  if (stragglers.empty() || !stragglers[0].persistent) return {};
  const MeanStep mean = MeanOfRanks(ComputeWaterfalls(run));
  if (!mean.IsWorthSaying(ExposedWaitFor(run, stragglers))) return {};
  if (const Ruling& ruling = RulingOn(run, Claim::kLateRank); ruling.is_undecided()) {
    return CannotTell(ruling.why);
  }
  const RankFacts rank(run, stragglers[0].trace);
  return {.insights = {AboutStraggler(run, rank, stragglers[0], mean)}};
}

Answer FindSlowClock(const Run& run) {
  const std::vector<Clock> clocks = MeanClocks(run);
  if (clocks.empty()) return CannotTell("no clocks of devices are recorded");
  if (clocks.size() < kLeastDevices) return CannotTell("fewer than three devices are recorded");
  if (!AreAllAlike(run)) return CannotTell("the devices are not of one kind");
  std::vector<double> all;
  for (const Clock& clock : clocks) all.push_back(clock.mhz);
  const double median = Median(all);
  const Clock slowest = *std::ranges::min_element(clocks, {}, &Clock::mhz);
  if (slowest.mhz >= kSlowClock * median) return {};
  const RankFacts rank(run, slowest.trace);
  const double share = 1 - slowest.mhz / median;
  const int64_t compute = rank.waterfall().mean[static_cast<size_t>(Cause::kCompute)];
  Insight insight{
      .trace = slowest.trace,
      .device = slowest.device,
      .finding = fmt::format("Device {} of {} runs at {:.0f} MHz in the mean, {} below the median "
                             "of {} devices ({:.0f} MHz).",
                             slowest.device, RankName(run.traces[slowest.trace]), slowest.mhz,
                             FormatPercent(100 * share), clocks.size(), median),
      .count = 1,
      .lost_ns = static_cast<int64_t>(share * static_cast<double>(compute)),
      .saving =
          Saving{.moments = rank.counted(), .causes = BitOf(Cause::kCompute), .share = share}};
  return {.insights = {std::move(insight)}};
}

}  // namespace ranktap::collector

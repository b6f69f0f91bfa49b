#include "collector/report/claims/late_rank.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "collector/facts/causes/late_module.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/pace.h"
#include "collector/facts/rank_windows.h"
#include "collector/facts/samples/late_line.h"
#include "collector/facts/shared_clock.h"
#include "collector/report/cells.h"
#include "collector/report/claims/claim.h"
#include "collector/report/claims/cross_checks.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/verdict_words.h"
#include "collector/trace/at_once.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

constexpr int64_t kSameMomentNs = 10'000;  // as the shortest wait that counts
constexpr int64_t kResiduals = 3;          // below which no skew is a finding, as *align* says

bool AreOfOneRank(const Run& run, uint32_t a, uint32_t b) {
  return FirstOfRank(run, a) == FirstOfRank(run, b);
}

int64_t ClockTolerance(const SharedClock& clock) {
  return std::max(kSameMomentNs, kResiduals * clock.residual_ns());
}

// Index into members of the one that began last.
size_t LastByClock(const SharedClock& clock, const CollectiveRun& call) {
  const auto at = [&](const CollectiveMember& member) {
    return clock.At(member.trace, member.start);
  };
  return static_cast<size_t>(std::ranges::max_element(call.members, {}, at) - call.members.begin());
}

// What others waited for a rank; by the clocks, for `others` instead.
struct WaitsByClock {
  int64_t all = 0;
  std::map<uint32_t, int64_t> others;  // by the first trace of the rank that came last
};

WaitsByClock WaitsFor(const Run& run, const SharedClock& clock, uint32_t late,
                      std::span<const CollectiveRun> calls) {
  WaitsByClock waits;
  for (const CollectiveRun& call : calls) {
    const CollectiveMember& shortest = call.members[call.last_arriver()];
    if (call.members.size() < 2 || !AreOfOneRank(run, shortest.trace, late)) continue;
    const int64_t wait =
        std::ranges::max(call.members, {}, &CollectiveMember::length).length() - shortest.length();
    const CollectiveMember& last = call.members[LastByClock(clock, call)];
    waits.all += wait;
    const int64_t later =
        clock.At(last.trace, last.start) - clock.At(shortest.trace, shortest.start);
    if (later > ClockTolerance(clock)) waits.others[FirstOfRank(run, last.trace)] += wait;
  }
  return waits;
}

// Each by its first trace: who meets the rank in collectives at all.
std::set<uint32_t> RanksThatWaitFor(const Run& run, uint32_t late) {
  std::vector<uint32_t> first;  // by trace: a search for each member took longer than all else
  for (uint32_t t = 0; t < run.traces.size(); ++t) first.push_back(FirstOfRank(run, t));
  std::vector<bool> meets(first.size());
  for (const CollectiveRun& call : MatchDeviceOrHostCollectives(run)) {
    const auto is_late = [&](const CollectiveMember& member) {
      return first[member.trace] == first[late];
    };
    if (std::ranges::none_of(call.members, is_late)) continue;
    for (const CollectiveMember& member : call.members) meets[first[member.trace]] = true;
  }
  meets[first[late]] = false;
  std::set<uint32_t> ranks;
  for (uint32_t t = 0; t < meets.size(); ++t) {
    if (meets[t]) ranks.insert(t);
  }
  return ranks;
}

}  // namespace

std::string MoreRanksThanTheGroupHas(const Run& run) {
  if (run.traces.size() < 2) return "";
  for (const CollectiveRun& call : MatchDeviceOrHostCollectives(run)) {
    if (call.group_size == 0 || call.members.size() <= call.group_size) continue;
    return fmt::format("{} ranks are taken for one group of {}", call.members.size(),
                       call.group_size);
  }
  return "";
}

std::string RanksMakeUnlikeSteps(const Run& run) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  std::map<uint32_t, size_t> steps;  // by the rank's first trace
  for (uint32_t t = 0; t < waterfalls.size(); ++t) {
    const StepList& found = waterfalls[t].steps;
    if (found.source.empty() || found.is_period) continue;  // nobody counted its steps
    steps[FirstOfRank(run, t)] += found.list.size();
  }
  if (steps.empty()) return "";
  const auto of = [](const auto& entry) { return entry.second; };
  const auto [least, most] = std::ranges::minmax_element(steps, {}, of);
  if (least->second * 3 >= most->second * 2) return "";
  return fmt::format("{} made {} and {} made {}", RankName(run.traces[least->first]),
                     Counted(least->second, "step"), RankName(run.traces[most->first]),
                     most->second);
}

std::string WaitsAreLongerThanSteps(const Run& run) {
  const std::vector<Straggler>& stragglers = StragglersOf(run);
  int64_t longest = 0;  // of the ranks that wait
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    if (stragglers.empty() || AreOfOneRank(run, t, stragglers[0].trace)) continue;
    longest = std::max(longest, ComputeWaterfalls(run)[t].mean_step);
  }
  if (longest == 0 || stragglers[0].caused_wait_ns <= longest) return "";
  return fmt::format("they would wait {} of each {} step", FormatNs(stragglers[0].caused_wait_ns),
                     FormatNs(longest));
}

std::string AnotherRankArrivesLast(const Run& run) {
  const std::vector<Straggler>& stragglers = StragglersOf(run);
  const SharedClock& clock = SharedClockOf(run);
  if (stragglers.empty() || TakeTurns(stragglers) || !clock.is_known()) return "";
  const std::vector<CollectiveRun>& calls = MatchDeviceOrHostCollectives(run);
  // Some thousands are worth a thread.
  constexpr size_t kAtOnce = 1 << 12;
  std::vector<WaitsByClock> parts((calls.size() + kAtOnce - 1) / kAtOnce);
  ForEachAtOnce(parts.size(), [&](size_t i) {
    const std::span<const CollectiveRun> some = std::span(calls).subspan(i * kAtOnce);
    parts[i] =
        WaitsFor(run, clock, stragglers[0].trace, some.first(std::min(kAtOnce, some.size())));
  });
  int64_t all = 0, against = 0;
  std::map<uint32_t, int64_t> others;
  for (const WaitsByClock& part : parts) {
    all += part.all;
    for (const auto& [rank, wait] : part.others) against += wait, others[rank] += wait;
  }
  if (against * 2 <= all) return "";
  const auto most = std::ranges::max_element(others, {}, [](const auto& of) { return of.second; });
  return fmt::format("{} is shortest in its collectives, but by the clocks {} comes last to them",
                     RankName(run.traces[stragglers[0].trace]), RankName(run.traces[most->first]));
}

std::string AnotherRankFallsBehind(const Run& run) {
  const std::vector<Straggler>& stragglers = StragglersOf(run);
  if (stragglers.empty()) return "";
  // Ranks that meet the late one in no collective go at a pace of their own.
  const std::set<uint32_t> meeting = RanksThatWaitFor(run, stragglers[0].trace);
  std::vector<uint32_t> group;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    if (AreOfOneRank(run, t, stragglers[0].trace) || meeting.contains(FirstOfRank(run, t))) {
      group.push_back(t);
    }
  }
  const std::optional<FallingBehind> behind = PaceOfSteps(run, group).behind;
  if (!behind || AreOfOneRank(run, behind->trace, stragglers[0].trace)) return "";
  const auto ns = static_cast<int64_t>(behind->ns);
  if (ns * 2 < std::max(stragglers[0].caused_wait_ns, ClockTolerance(SharedClockOf(run))))
    return "";
  return fmt::format(
      "{} is last to its collectives, but {} falls behind by {} more with each step, so that they "
      "do not wait for each other",
      RankName(run.traces[stragglers[0].trace]), RankName(run.traces[behind->trace]), FormatNs(ns));
}

std::string PlaceOfExcess(const Run& run, const Straggler& straggler) {
  if (!straggler.cause) return "";
  std::string module = ModuleOfExcess(run, straggler.trace, *straggler.cause, straggler.excess_ns);
  if (!module.empty() || *straggler.cause != Cause::kCompute) return module;
  const std::vector<ModuleExcess> kernels = ExcessOfKernels(run, straggler.trace);
  if (kernels.empty() || kernels[0].ns * 2 <= straggler.excess_ns) return "";
  return TellingKernelName(ReadableKernelName(kernels[0].name));
}

std::string DescribeExcessOf(const Run& run, const Straggler& straggler, std::string_view others) {
  std::string text = fmt::format("{} a step more than {} {}", FormatNs(straggler.excess_ns), others,
                                 DescribeExcess(*straggler.cause));
  const std::string place = PlaceOfExcess(run, straggler);
  return place.empty() ? text : fmt::format("{} (most in {})", text, place);
}

LateLine LineOfLateRank(const Run& run, const Straggler& straggler) {
  return FindLateLine(run, straggler.trace,
                      std::max(straggler.caused_wait_ns, straggler.excess_ns) / 2);
}

std::string DescribeLateLine(const Run& run, const Straggler& straggler) {
  const LateLine line = LineOfLateRank(run, straggler);
  if (line.text.empty()) return "";
  return straggler.cause ? fmt::format(", at {}", line.text)
                         : fmt::format(", which spends {} a step more than they do at {}",
                                       FormatNs(line.excess_ns), line.text);
}

std::string DescribeLateRank(const Run& run) {
  const std::vector<Straggler>& stragglers = StragglersOf(run);
  if (const Ruling& ruling = RulingOn(run, Claim::kLateRank); ruling.is_undecided()) {
    return fmt::format("ranks wait for each other, and for which of them is undecided: {}",
                       ruling.why);
  }
  const Straggler& straggler = stragglers[0];
  const std::string rank = RankName(run.traces[straggler.trace]);
  if (TakeTurns(stragglers)) {
    return fmt::format("the ranks wait for each other in turn, most for {}", rank);
  }
  const std::set<uint32_t> waiting = RanksThatWaitFor(run, straggler.trace);
  const bool is_one = waiting.size() == 1 && run.traces.size() > 2;
  std::string text =
      is_one ? fmt::format("{} waits for {}", RankName(run.traces[*waiting.begin()]), rank)
             : fmt::format("the other ranks wait for {}", rank);
  if (straggler.cause) {
    text += ", which spends " + DescribeExcessOf(run, straggler, is_one ? "it does" : "they do");
  }
  text += DescribeLateLine(run, straggler);
  return text + (straggler.persistent || straggler.steps < 2 ? "" : " (in some steps only)");
}

int64_t ExposedWaitFor(const Run& run, const std::vector<Straggler>& stragglers) {
  if (stragglers.empty()) return 0;
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const bool in_turn = TakeTurns(stragglers);
  int64_t caused = 0, waited = 0;
  for (size_t i = 0; i < (in_turn ? stragglers.size() : 1); ++i) {
    caused += stragglers[i].caused_wait_ns;
  }
  for (uint32_t t = 0; t < waterfalls.size(); ++t) {
    if (!in_turn && AreOfOneRank(run, t, stragglers[0].trace)) continue;
    waited = std::max(waited, waterfalls[t].mean[static_cast<size_t>(Cause::kWait)]);
  }
  return std::min(caused, waited);
}

}  // namespace ranktap::collector

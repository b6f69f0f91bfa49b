#include "collector/facts/causes/stragglers.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/numbers/interval_union.h"
#include "collector/facts/rank_windows.h"
#include "collector/trace/at_once.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

// Waits as short as one launch takes are not a lateness.
constexpr int64_t kLeastWaitNs = 10'000;

// A rank that is late once in two steps has no habit.
constexpr size_t kLeastLateSteps = 2;

// The collectives to which one rank came last in one step, by window, step and rank. A list of each
// trace's waits instead took 50 MB of 64 ranks of a million events, and a search for each.
using Late = std::map<std::tuple<uint32_t, int64_t, uint32_t>, std::vector<const CollectiveRun*>>;

// The mean over the waiting ranks. Buckets that wait at once are one wait.
int64_t MeanWait(const std::vector<const CollectiveRun*>& collectives, size_t traces) {
  std::vector<std::vector<Interval>> waits(traces);
  for (const CollectiveRun* const collective : collectives) {
    const CollectiveMember& last = collective->members[collective->last_arriver()];
    for (const CollectiveMember& member : collective->members) {
      if (member.trace == last.trace) continue;
      waits[member.trace].emplace_back(member.start, member.end - last.length());
    }
  }
  int64_t sum = 0, waiting = 0;
  for (std::vector<Interval>& of_trace : waits) {
    if (of_trace.empty()) continue;
    sum += UnionLength(std::move(of_trace));
    ++waiting;
  }
  return sum / waiting;
}

void AddWaits(const Late& late, std::vector<Straggler>* all) {
  std::vector<const Late::value_type*> of_step;
  for (const Late::value_type& entry : late) of_step.push_back(&entry);
  std::vector<int64_t> waits(of_step.size());
  ForEachAtOnce(waits.size(),
                [&](size_t i) { waits[i] = MeanWait(of_step[i]->second, all->size()); });
  std::pair<int64_t, uint32_t> worst;
  for (size_t i = 0; i < waits.size(); ++i) {
    const auto& [window, step, rank] = of_step[i]->first;
    (*all)[rank].caused_wait_ns += waits[i];
    if (waits[i] > worst.first) worst = {waits[i], rank};
    if (i + 1 < waits.size()) {
      const auto& [next_window, next_step, next_rank] = of_step[i + 1]->first;
      if (next_window == window && next_step == step) continue;
    }
    ++(*all)[worst.second].steps_late;
    worst = {};
  }
}

int64_t StepAt(const RankWaterfall& waterfall, int64_t time) {
  const std::vector<Step>& list = waterfall.steps.list;
  const auto after = std::upper_bound(list.begin(), list.end(), time,
                                      [](int64_t at, const Step& s) { return at < s.start; });
  return after - list.begin() - 1;  // the device runs behind the host: no end is asked for
}

void FindCause(const std::vector<RankWaterfall>& waterfalls, Straggler* straggler) {
  for (const Cause cause :
       {Cause::kCompute, Cause::kMemory, Cause::kDataLoading, Cause::kHost, Cause::kLatency,
        Cause::kDependency, Cause::kCheckpoint, Cause::kCollection, Cause::kCapture,
        Cause::kOptimizer, Cause::kBackward, Cause::kForward}) {
    std::vector<double> others;
    for (size_t t = 0; t < waterfalls.size(); ++t) {
      if (t != straggler->trace && waterfalls[t].counted > 0) {
        others.push_back(static_cast<double>(TimeOf(cause, waterfalls[t].mean)));
      }
    }
    const int64_t own = TimeOf(cause, waterfalls[straggler->trace].mean);
    const int64_t excess = own - static_cast<int64_t>(Median(std::move(others)));
    if (excess > straggler->excess_ns) {
      straggler->excess_ns = excess;
      straggler->cause = cause;
    }
  }
}

// One of two ranks that take turns at random is late in half of the steps: no habit of its own.
bool IsPersistent(const Straggler& straggler, const std::vector<Straggler>& all, size_t steps) {
  if (straggler.steps_late < kLeastLateSteps || straggler.steps_late * 2 < steps) return false;
  return std::ranges::none_of(all, [&](const Straggler& other) {
    return &other != &straggler && other.steps_late * 2 > straggler.steps_late;
  });
}

}  // namespace

std::vector<Straggler> FindStragglers(const Run& run, const std::vector<CollectiveRun>& collectives,
                                      const std::vector<RankWaterfall>& waterfalls) {
  std::vector<Straggler> all(run.traces.size());
  std::vector<uint32_t> first, window;  // of its rank, by trace
  std::vector<size_t> steps_of(run.traces.size());
  for (uint32_t t = 0; t < all.size(); ++t) {
    first.push_back(FirstOfRank(run, t));
    window.push_back(WindowOf(run, t));
    steps_of[first[t]] += waterfalls[t].counted;
  }
  const size_t steps = all.empty() ? 0 : *std::max_element(steps_of.begin(), steps_of.end());
  Late by_step;
  for (const CollectiveRun& collective : collectives) {
    if (collective.members.size() < 2) continue;
    const CollectiveMember& last = collective.members[collective.last_arriver()];
    const int64_t step = StepAt(waterfalls[last.trace], last.start);
    const bool warm_up = step >= 0 && waterfalls[last.trace].steps.list[step].warm_up;
    if (step < 0 || warm_up) continue;
    int64_t longest = 0;
    for (const CollectiveMember& member : collective.members) {
      longest = std::max(longest, member.length() - last.length());
      ++all[first[member.trace]].collectives;
    }
    if (longest < kLeastWaitNs) continue;
    const uint32_t rank = first[last.trace];
    ++all[rank].last_arrivals;
    by_step[{window[last.trace], step, rank}].push_back(&collective);
  }
  AddWaits(by_step, &all);
  std::vector<Straggler> found;
  for (uint32_t t = 0; t < all.size(); ++t) {
    if (all[t].caused_wait_ns == 0) continue;
    all[t].trace = t;
    all[t].steps = steps;
    all[t].caused_wait_ns /= static_cast<int64_t>(std::max<size_t>(steps, 1));
    all[t].persistent = IsPersistent(all[t], all, steps);
    FindCause(waterfalls, &all[t]);
    found.push_back(all[t]);
  }
  SortRows(&found, [](const Straggler& a, const Straggler& b) {
    return a.caused_wait_ns > b.caused_wait_ns;
  });
  return found;
}

bool TakeTurns(const std::vector<Straggler>& stragglers) {
  return stragglers.size() > 1 && stragglers[0].steps > 1 && !stragglers[0].persistent &&
         stragglers[1].caused_wait_ns * 2 >= stragglers[0].caused_wait_ns;
}

const std::vector<Straggler>& StragglersOf(const Run& run) {
  return run.memo.Get<std::vector<Straggler>>([&run]() -> std::vector<Straggler> {
    if (run.traces.size() < 2) return {};  // nobody waits
    return FindStragglers(run, MatchDeviceOrHostCollectives(run), ComputeWaterfalls(run));
  });
}

}  // namespace ranktap::collector

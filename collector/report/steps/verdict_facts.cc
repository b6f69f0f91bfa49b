#include "collector/report/steps/verdict_facts.h"

#include <cstdint>
#include <iterator>

#include "collector/facts/causes/stragglers.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/report/claims/cross_checks.h"
#include "collector/report/insights/find_insights.h"
#include "collector/report/steps/loss_place.h"
#include "collector/report/steps/recoverable.h"
#include "collector/report/steps/trusted_time.h"
#include "collector/report/steps/verdict_scope.h"
#include "collector/trace/at_once.h"

namespace ranktap::collector {

namespace {

using Ask = void (*)(const Run&);
constexpr Ask kDeviceFacts[] = {
    [](const Run& of) { CoveredByCriticalPath(of); },  // the longest that no other needs first
    [](const Run& of) { WhatDisagrees(of); },
    [](const Run& of) { FindLossPlaces(of); },
    [](const Run& of) { InsightsForVerdict(of); },
    // Insights ask for these in turn: another thread makes them meanwhile.
    [](const Run& of) { LaunchesAreMissing(of), StragglersOf(of); },
};

}  // namespace

void AskDeviceFacts(const Run& run) {
  ForEachAtOnce(std::size(kDeviceFacts), [&run](size_t i) { kDeviceFacts[i](run); });
}

// A rank alone keeps one processor busy with its waterfall. Others work on its summary, and then
// on what the verdict will ask for unless something is missing.
void AskFirstFacts(const Run& run) {
  if (run.traces.size() >= ThreadsFor(SIZE_MAX)) return;  // each is asked on all of them anyway
  const size_t facts = AnythingRanOnADevice(run) ? std::size(kDeviceFacts) : 0;
  ForEachAtOnce(2 + facts, [&run](size_t i) {
    if (i == 0) {
      ComputeWaterfalls(run);
    } else if (WhatIsMissing(run).empty() && i > 1) {
      kDeviceFacts[i - 2](run);
    }
  });
}

}  // namespace ranktap::collector

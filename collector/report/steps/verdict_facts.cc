#include "collector/report/steps/verdict_facts.h"

#include <cstdint>
#include <iterator>

#include "collector/facts/causes/waterfall.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/insights/find_insights.h"
#include "collector/report/steps/loss_place.h"
#include "collector/report/steps/recoverable.h"
#include "collector/report/steps/trusted_time.h"
#include "collector/trace/at_once.h"

namespace ranktap::collector {

void AskDeviceFacts(const Run& run) {
  using Ask = void (*)(const Run&);
  static constexpr Ask kFacts[] = {
      [](const Run& of) { MomentsOnCriticalPath(of); },  // the longest that no other needs first
      [](const Run& of) { WhatDisagrees(of); },
      [](const Run& of) { FindLossPlaces(of); },
      [](const Run& of) { InsightsOf(of); },
  };
  ForEachAtOnce(std::size(kFacts), [&run](size_t i) { kFacts[i](run); });
}

void AskFirstFacts(const Run& run) {
  if (run.traces.size() >= ThreadsFor(SIZE_MAX)) return;  // each is asked on all of them anyway
  ForEachAtOnce(2, [&run](size_t i) {
    if (i == 0) {
      ComputeWaterfalls(run);
    } else {
      for (const Trace& trace : run.traces) SummarizeRank(trace);
    }
  });
}

}  // namespace ranktap::collector

#include "collector/export/recorded_cycles.h"

#include <algorithm>
#include <set>
#include <utility>

#include "collector/export/run_clock.h"
#include "collector/facts/steps.h"

namespace ranktap::collector {
namespace {

std::set<int64_t> RecordedSteps(const Trace& trace) {
  const StepList& steps = DetectSteps(trace);
  std::set<int64_t> numbers;
  for (const int64_t start : trace.operators.start) {
    const int64_t index = StepIndexAt(steps, start);
    if (index >= 0) numbers.insert(steps.list[static_cast<size_t>(index)].number);
  }
  return numbers;
}

// First and last numbers of those that follow each other.
std::vector<std::pair<int64_t, int64_t>> Stretches(const std::set<int64_t>& numbers) {
  std::vector<std::pair<int64_t, int64_t>> stretches;
  for (const int64_t number : numbers) {
    if (stretches.empty() || stretches.back().second + 1 != number) {
      stretches.emplace_back(number, number);
    }
    stretches.back().second = number;
  }
  return stretches;
}

}  // namespace

std::vector<RecordedCycle> RecordedCycles(const Run& run) {
  std::vector<std::pair<int64_t, int64_t>> stretches;
  for (const Trace& trace : run.traces) {
    if (stretches.empty()) stretches = Stretches(RecordedSteps(trace));
  }
  std::vector<RecordedCycle> cycles;
  for (const auto& [first, last] : stretches) {
    RecordedCycle cycle{.of_all = {INT64_MAX, INT64_MIN}};
    for (const Trace& trace : run.traces) {
      const int64_t shift = RealtimeOffset(run, trace);
      Interval own{INT64_MAX, INT64_MIN};
      for (const Step& step : DetectSteps(trace).list) {
        if (step.number < first || step.number > last) continue;
        own.first = std::min(own.first, step.start + shift);
        own.second = std::max(own.second, step.end + shift);
      }
      cycle.of_all.first = std::min(cycle.of_all.first, own.first);
      cycle.of_all.second = std::max(cycle.of_all.second, own.second);
      cycle.by_trace.push_back(own);
    }
    cycles.push_back(std::move(cycle));
  }
  return cycles;
}

}  // namespace ranktap::collector

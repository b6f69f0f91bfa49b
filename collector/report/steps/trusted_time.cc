#include "collector/report/steps/trusted_time.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "collector/facts/backlog.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/facts/device_timeline.h"
#include "collector/facts/each_trace.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/steps.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

constexpr double kTolerableNotRead = 0.01;   // of a file's events
constexpr double kTolerableLaunches = 0.02;  // that have no kernel, of the kernels

constexpr double kSameTime = 0.01;  // of the steps' time
constexpr double kSameWork = 0.1;   // of what computes: streams overlap, and steps meet within work
constexpr size_t kLeastOutside = 3;  // periods

double Ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

bool Differ(int64_t a, int64_t b, double tolerable, int64_t whole) {
  return std::abs(Ratio(a - b, whole)) > tolerable;
}

struct Compute {
  int64_t in_steps = 0;           // as *temporal* counts it
  int64_t launched_by_steps = 0;  // and before them, where it ran in their time
  int64_t all = 0;
};

Compute ComputeOf(const Trace& trace, const std::vector<Interval>& steps) {
  const StepList& on_host = DetectSteps(trace);
  const DeviceSpans& spans = DeviceTimeline(trace);
  const Backlog& backlog = BacklogOf(trace);
  StepFinder finder(trace, on_host);
  Compute compute;
  int64_t reached = INT64_MIN, reached_by_theirs = INT64_MIN;
  size_t at = 0;
  for (const DeviceSpan& span : spans) {
    if (span.kind != WorkKind::kCompute) continue;
    if (span.end > reached) {
      const int64_t from = std::max(span.start, reached);
      compute.all += span.end - from;
      compute.in_steps += LengthWithin(steps, from, span.end, &at);
      reached = span.end;
    }
    if (span.end <= reached_by_theirs) continue;
    const bool is_theirs = backlog.Holds(span) ? !Within(steps, span.start, span.end).empty()
                                               : finder.IndexOf(span) >= 0;
    if (!is_theirs) continue;
    compute.launched_by_steps += span.end - std::max(span.start, reached_by_theirs);
    reached_by_theirs = span.end;
  }
  return compute;
}

// "the parts of step 3 add up to 80.0 % of it"
std::string PartsDisagree(const RankWaterfall& waterfall) {
  const std::vector<Step>& list = waterfall.steps.list;
  for (size_t i = 0; i < list.size(); ++i) {
    const CauseTimes& times = waterfall.times[i];
    const int64_t sum = std::accumulate(times.begin(), times.end(), int64_t{0});
    if (!Differ(sum, list[i].length(), kSameTime, list[i].length())) continue;
    return fmt::format("the parts of {} {} add up to {} of its {}", waterfall.steps.noun(),
                       list[i].number, FormatNs(sum), FormatNs(list[i].length()));
  }
  return "";
}

// How often the device's work repeats, where most of that lies outside the steps.
std::string CountDisagrees(const Trace& trace, const RankWaterfall& waterfall,
                           const std::vector<Interval>& steps) {
  const std::vector<int64_t> periods = StartsOfPeriods(trace);
  const auto inside =
      static_cast<size_t>(std::count_if(periods.begin(), periods.end(), [&steps](int64_t at) {
        return !Within(steps, at, at + 1).empty();
      }));
  if (periods.size() - inside < kLeastOutside || inside * 2 > periods.size()) return "";
  return fmt::format("the device's work repeats {} times, {} of them in the {} that were found",
                     periods.size(), inside, Counted(waterfall.steps.list.size(), "step"));
}

std::string DeviceDisagrees(const Trace& trace, const RankWaterfall& waterfall) {
  std::vector<Interval> steps;
  int64_t length = 0, computes = 0;
  for (size_t i = 0; i < waterfall.steps.list.size(); ++i) {
    const Step& step = waterfall.steps.list[i];
    steps.emplace_back(step.start, step.end);
    length += step.length();
    computes += waterfall.times[i][static_cast<size_t>(Cause::kCompute)];
  }
  steps = Merged(std::move(steps));
  if (Differ(Length(steps), length, kSameTime, length)) {
    return fmt::format("its steps add up to {} and span {}", FormatNs(length),
                       FormatNs(Length(steps)));
  }
  const Compute compute = ComputeOf(trace, steps);
  if (Differ(compute.in_steps, computes, kSameTime, length)) {
    return fmt::format("waterfall sees {} of its steps compute, temporal {}",
                       FormatShare(computes, length), FormatShare(compute.in_steps, length));
  }
  if (waterfall.steps.source.empty() || waterfall.steps.is_period) return "";
  if (Differ(compute.in_steps, compute.launched_by_steps, kSameWork,
             std::max(compute.in_steps, compute.launched_by_steps)) &&
      Differ(compute.in_steps, compute.launched_by_steps, kSameTime, length)) {
    return fmt::format("{} compute in its steps, and they launched {}", FormatNs(compute.in_steps),
                       FormatNs(compute.launched_by_steps));
  }
  return compute.in_steps * 2 < compute.all ? CountDisagrees(trace, waterfall, steps) : "";
}

}  // namespace

std::string WhatDisagrees(const Run& run, const std::vector<RankWaterfall>& waterfalls) {
  std::vector<std::string> found(run.traces.size());
  ForEachTraceAtOnce(run, [&](uint32_t t) {
    if (waterfalls[t].counted == 0) return;
    found[t] = PartsDisagree(waterfalls[t]);
    if (found[t].empty() && !waterfalls[t].on_host) {
      found[t] = DeviceDisagrees(run.traces[t], waterfalls[t]);
    }
  });
  for (size_t t = 0; t < found.size(); ++t) {
    if (!found[t].empty()) return fmt::format("of {}, {}", RankName(run.traces[t]), found[t]);
  }
  return "";
}

const std::string& WhatDisagrees(const Run& run) {
  struct Disagreement {
    std::string why;
  };
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  // Its threads ask the memos of their traces alone.
  return run.memo.Get<Disagreement>([&] { return Disagreement{WhatDisagrees(run, waterfalls)}; })
      .why;
}

std::string WhatIsMissing(const Run& run) {
  ForEachTraceAtOnce(run, [&run](uint32_t t) { SummarizeRank(run.traces[t]); });
  for (const Trace& trace : run.traces) {
    uint64_t lost = 0;
    for (const Writer& writer : trace.writers) {
      lost += proto::Total(writer.lost) + proto::Total(writer.declared);
    }
    if (lost > 0) return fmt::format("{} lost {} events", RankName(trace), lost);
    if (!trace.damage.empty()) {
      return fmt::format("{}'s file is damaged at byte {} ({})", RankName(trace),
                         trace.damage[0].offset, trace.damage[0].what);
    }
    // Where it has no other, any device work that is not read is all that its devices did.
    const bool is_all = trace.not_read_most.starts_with("device ") && trace.kernels.size() == 0;
    if (is_all || static_cast<double>(trace.not_read) >
                      kTolerableNotRead * static_cast<double>(trace.events + trace.not_read)) {
      return fmt::format("{} of {} could not be read, mostly {}", Counted(trace.not_read, "event"),
                         RankName(trace), trace.not_read_most);
    }
    if (trace.kernel_counters.size() > 0) {
      return fmt::format("{} ran {} one at a time for hardware counters", RankName(trace),
                         Counted(trace.kernel_counters.size(), "kernel"));
    }
    // This holds for a capture alone: a profiler's window has launches at its end whose kernels ran
    // after it.
    const RankRow& row = SummarizeRank(trace);
    if (trace.is_ours() && static_cast<double>(row.launches_without_kernel) >
                               kTolerableLaunches * static_cast<double>(row.kernels)) {
      const int64_t count = row.launches_without_kernel;
      return fmt::format("{} {} of {} {} no kernel record", count,
                         count == 1 ? "launch" : "launches", RankName(trace),
                         count == 1 ? "has" : "have");
    }
  }
  return "";
}

}  // namespace ranktap::collector

#include "collector/report/steps/verdict.h"
#include "collector/report/reports.h"

#include <algorithm>
#include <optional>

#include "collector/analysis/device_timeline.h"
#include "collector/analysis/each_trace.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/steps/stragglers.h"
#include "collector/report/wording.h"

namespace ranktap::collector {
namespace {

constexpr double kWorthSaying = 0.01;        // of the step
constexpr double kTolerableLaunches = 0.02;  // that have no kernel, of the kernels

// Why no share of time can be trusted; empty: nothing is missing.
std::string WhatIsMissing(const Run& run) {
  ForEachTraceAtOnce(run, [&run](uint32_t t) { SummarizeRank(run.traces[t]); });
  for (const Trace& trace : run.traces) {
    uint64_t lost = 0;
    for (const Writer& writer : trace.writers) {
      lost += proto::Total(writer.lost) + proto::Total(writer.declared);
    }
    if (lost > 0) return RankName(trace) + " lost " + std::to_string(lost) + " events";
    if (!trace.damage.empty()) {
      return RankName(trace) + "'s file is damaged at byte " +
             std::to_string(trace.damage[0].offset) + " (" + trace.damage[0].what + ")";
    }
    // Of a capture: a profiler's window has launches at its end whose kernels ran after it.
    const RankRow& row = SummarizeRank(trace);
    if (trace.origin == TraceOrigin::kCapture &&
        static_cast<double>(row.launches_without_kernel) >
            kTolerableLaunches * static_cast<double>(row.kernels)) {
      return std::to_string(row.launches_without_kernel) + " launches of " + RankName(trace) +
             " have no kernel record";
    }
  }
  return "";
}

std::string_view Describe(Cause cause) {
  switch (cause) {
    case Cause::kTransfer:
      return "communication that nothing computes behind";
    case Cause::kMemory:
      return "copies and memsets that nothing computes behind";
    case Cause::kDataLoading:
      return "an idle device while the host loads data";
    case Cause::kSync:
      return "an idle device after the host waited for it (synchronisation)";
    case Cause::kHost:
      return "an idle device because the host launches too late (host-bound)";
    case Cause::kLatency:
      return "gaps between kernels that were launched in time";
    case Cause::kDependency:
      return "launched work that waits for something else";
    case Cause::kNotRecorded:
      return "time in which capture was off";
    default:
      return NameOf(cause);
  }
}

std::string DescribeStraggler(const Run& run, const Straggler& straggler) {
  const std::string rank = RankName(run.traces[straggler.trace]);
  std::string text = "the other ranks wait for " + rank;
  if (straggler.cause) {
    text += ", which spends " + Duration(straggler.excess_ns) + " a step more than they do on " +
            std::string(NameOf(*straggler.cause));
  }
  return text + (straggler.persistent ? "" : " (in some steps only)");
}

// Of the work on devices: a file without the host's calls.
bool HasNoLaunches(const Run& run) {
  return std::none_of(run.traces.begin(), run.traces.end(), [](const Trace& trace) {
    const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
    return std::any_of(spans.begin(), spans.end(),
                       [](const DeviceSpan& span) { return span.launch != kNone; });
  });
}

std::vector<Loss> FindLosses(const Run& run, const std::vector<RankWaterfall>& waterfalls,
                             const std::vector<Straggler>& stragglers, int64_t ranks) {
  std::vector<Loss> losses;
  for (size_t c = 1; c < kCauses; ++c) {
    const auto cause = static_cast<Cause>(c);
    Loss loss{.cause = cause, .ns = 0, .trace = 0, .finding = ""};
    int64_t most = -1;
    for (uint32_t t = 0; t < waterfalls.size(); ++t) {
      if (waterfalls[t].counted == 0) continue;
      loss.ns += waterfalls[t].mean[c];
      if (waterfalls[t].mean[c] > most) {
        most = waterfalls[t].mean[c];
        loss.trace = t;
      }
    }
    loss.ns /= ranks;
    if (loss.ns == 0) continue;
    if (cause == Cause::kWait && !stragglers.empty()) {
      loss.trace = stragglers[0].trace;
      loss.finding = DescribeStraggler(run, stragglers[0]);
      loss.blames = true;
    } else if (cause == Cause::kHost && HasNoLaunches(run)) {
      loss.finding = "an idle device, why is not known: no launches are recorded";
    } else {
      loss.finding = Describe(cause);
    }
    losses.push_back(std::move(loss));
  }
  std::stable_sort(losses.begin(), losses.end(),
                   [](const Loss& a, const Loss& b) { return a.ns > b.ns; });
  return losses;
}

bool AnythingRanOnADevice(const Run& run) {
  return std::any_of(run.traces.begin(), run.traces.end(), [](const Trace& trace) {
    return trace.kernels.size() + trace.copies.size() + trace.memsets.size() > 0;
  });
}

// Of a run in which no device has anything to lose.
std::string DescribeHostTime(const std::vector<RankWaterfall>& waterfalls, int64_t mean_step,
                             const std::string& of) {
  int64_t loading = 0, ranks = 0;
  for (const RankWaterfall& waterfall : waterfalls) {
    if (waterfall.counted == 0) continue;
    ++ranks;
    loading += waterfall.mean[static_cast<size_t>(Cause::kDataLoading)];
  }
  std::string text = "Nothing ran on a device: all" + of + " is the host's time";
  if (loading > 0) {
    text += ", " + Duration(loading / ranks) + " (" + Share(loading / ranks, mean_step) +
            ") of it waiting for data";
  }
  return text + ".";
}

std::string OnWhichRank(const Run& run, const Loss& loss, int64_t ranks) {
  const Trace& trace = run.traces[loss.trace];
  if (loss.blames || (ranks == 1 && !trace.info.rank)) return "";
  return (ranks > 1 ? ", most on " : ", on ") + RankName(trace);
}

}  // namespace

Verdict Judge(const Run& run) {
  Verdict verdict;
  const std::string missing = WhatIsMissing(run);
  if (!missing.empty()) {
    verdict.refused = true;
    verdict.sentence = "No verdict: " + missing + ", so what the time went to is not known.";
    return verdict;
  }
  const std::vector<CollectiveRun>& collectives = MatchDeviceOrHostCollectives(run);
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  int64_t ranks = 0, compute = 0;
  bool has_steps = true;
  for (const RankWaterfall& waterfall : waterfalls) {
    if (waterfall.counted == 0) continue;
    ++ranks;
    verdict.mean_step += waterfall.mean_step;
    compute += waterfall.mean[static_cast<size_t>(Cause::kCompute)];
    has_steps &= !waterfall.steps.source.empty();
  }
  if (ranks == 0) {
    verdict.on_host = true;
    verdict.sentence = "No verdict: nothing ran on a device.";
    return verdict;
  }
  verdict.mean_step /= ranks;
  compute /= ranks;
  const std::vector<Straggler> stragglers = FindStragglers(run, collectives, waterfalls);
  verdict.losses = FindLosses(run, waterfalls, stragglers, ranks);
  const std::string of = has_steps ? " of each " + Duration(verdict.mean_step) + " step"
                                   : " of " + Duration(verdict.mean_step) + " (no steps found)";
  const auto worth = static_cast<int64_t>(kWorthSaying * static_cast<double>(verdict.mean_step));
  if (!AnythingRanOnADevice(run)) {
    verdict.losses.clear();
    verdict.on_host = true;
    verdict.sentence = DescribeHostTime(waterfalls, verdict.mean_step, of);
    if (!stragglers.empty() && stragglers[0].caused_wait_ns >= worth) {
      const int64_t wait = stragglers[0].caused_wait_ns;
      const std::string finding = DescribeStraggler(run, stragglers[0]);
      verdict.sentence.back() = ';';
      verdict.sentence += " in " + Duration(wait) + " (" + Share(wait, verdict.mean_step) +
                          ") of it " + finding + ".";
      verdict.losses.push_back({Cause::kWait, wait, stragglers[0].trace, true, finding});
    }
    return verdict;
  }
  if (verdict.losses.empty() || verdict.losses[0].ns < worth) {
    verdict.sentence = "No loss is worth more than 1 %" + of + ": the devices compute " +
                       Share(compute, verdict.mean_step) + " of the time.";
    return verdict;
  }
  const Loss& largest = verdict.losses[0];
  verdict.sentence = "The largest recoverable loss is " + Duration(largest.ns) + of + " (" +
                     Share(largest.ns, verdict.mean_step) + "): " + largest.finding +
                     OnWhichRank(run, largest, ranks) + ".";
  return verdict;
}

Table TabulateVerdict(const Run& run, const ReportOptions&) {
  Verdict verdict = Judge(run);
  Table table{.name = "verdict",
              .title = std::move(verdict.sentence),
              .columns = {{"cause", Unit::kText},
                          {"loss_ns", Unit::kNs},
                          {"share_percent", Unit::kPercent},
                          {"rank", Unit::kCount},
                          {"finding", Unit::kText, Shown::kProse}}};
  for (Loss& loss : verdict.losses) {
    table.rows.push_back({std::string(NameOf(loss.cause)), loss.ns,
                          Percent(loss.ns, verdict.mean_step), RankCell(run.traces[loss.trace]),
                          std::move(loss.finding)});
  }
  if (verdict.refused) {
    table.notes.push_back("ranktap report RUN losses lists what is missing");
  }
  if (verdict.on_host) {
    table.notes.push_back("ranktap report RUN ops, modules and ranges say what the host does");
  }
  return table;
}

}  // namespace ranktap::collector

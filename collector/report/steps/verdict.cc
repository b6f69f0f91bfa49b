#include "collector/report/steps/verdict.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "collector/facts/backlog.h"
#include "collector/facts/device_timeline.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/jobs.h"
#include "collector/report/steps/loss_place.h"
#include "collector/report/steps/recoverable.h"
#include "collector/report/steps/stragglers.h"
#include "collector/report/steps/trusted_time.h"
#include "collector/report/steps/verdict_words.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

constexpr double kWorthSaying = 0.01;  // of the step
constexpr size_t kPartsSaid = 3;

// stragglers: at least one.
std::string DescribeStragglers(const Run& run, const std::vector<Straggler>& stragglers) {
  const Straggler& straggler = stragglers[0];
  const std::string rank = RankName(run.traces[straggler.trace]);
  if (TakeTurns(stragglers)) {
    return fmt::format("the ranks wait for each other in turn, most for {}", rank);
  }
  std::string text = fmt::format("the other ranks wait for {}", rank);
  if (straggler.cause) {
    text += fmt::format(", which spends {} a step more than they do {}",
                        FormatNs(straggler.excess_ns), DescribeExcess(*straggler.cause));
  }
  return text + (straggler.persistent || straggler.steps < 2 ? "" : " (in some steps only)");
}

// Why nobody can say whether the host was late; empty: most of the work has its launch.
std::string_view WhyHostIsNotKnown(const Run& run) {
  size_t known = 0, unknown = 0;
  for (const Trace& trace : run.traces) {
    const Column<uint32_t>& launches = trace.kernels.launch;
    const auto without = static_cast<size_t>(std::count(launches.begin(), launches.end(), kNone));
    known += launches.size() - without;
    if (without == 0) continue;
    const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
    const Backlog& backlog = BacklogOf(trace);
    unknown += static_cast<size_t>(
        std::count_if(spans.begin(), spans.end(), [&backlog](const DeviceSpan& span) {
          return span.table == DeviceSpan::Table::kKernel && span.launch == kNone &&
                 !backlog.Holds(span);
        }));
  }
  if (unknown <= known) return "";
  return known == 0 ? "no launches are recorded" : "most launches are not recorded";
}

// Not lost: what a rank without a device computes.
bool IsHostsWork(Cause cause) {
  return cause == Cause::kOptimizer || cause == Cause::kBackward || cause == Cause::kForward;
}

std::vector<Loss> FindLosses(const Run& run, const std::vector<RankWaterfall>& waterfalls,
                             const std::vector<Straggler>& stragglers, int64_t ranks) {
  const std::string_view why_not_known = WhyHostIsNotKnown(run);
  std::vector<Loss> losses;
  for (size_t c = 1; c < kCauses; ++c) {
    const auto cause = static_cast<Cause>(c);
    if (IsHostsWork(cause)) continue;
    Loss loss{.cause = cause, .finding = ""};
    int64_t most = -1;
    for (uint32_t t = 0; t < waterfalls.size(); ++t) {
      if (waterfalls[t].counted == 0) continue;
      loss.ns += waterfalls[t].mean[c];
      const bool is_first_of_equals = waterfalls[t].mean[c] == most &&
                                      run.traces[t].info.rank < run.traces[loss.trace].info.rank;
      if (waterfalls[t].mean[c] > most || is_first_of_equals) {
        most = waterfalls[t].mean[c];
        loss.trace = t;
      }
    }
    loss.ns /= ranks;
    if (loss.ns == 0) continue;
    if (cause == Cause::kWait && !stragglers.empty()) {
      loss.trace = stragglers[0].trace;
      loss.finding = DescribeStragglers(run, stragglers);
      loss.blames = true;
    } else if (cause == Cause::kHost && !why_not_known.empty()) {
      loss.finding = fmt::format("an idle device, why is not known: {}", why_not_known);
    } else {
      loss.finding = DescribeLoss(cause);
    }
    losses.push_back(std::move(loss));
  }
  SortRows(&losses, [](const Loss& a, const Loss& b) { return a.ns > b.ns; });
  return losses;
}

bool AnythingRanOnADevice(const Run& run) {
  return std::any_of(run.traces.begin(), run.traces.end(), [](const Trace& trace) {
    return trace.kernels.size() + trace.copies.size() + trace.memsets.size() > 0;
  });
}

// Mean over the ranks that have steps, or anything on a device.
struct MeanStep {
  int64_t ranks = 0, ns = 0;
  CauseTimes times{};
  bool has_steps = true;           // false: some rank's whole trace is one
  std::string_view noun = "step";  // or "period"

  bool IsWorthSaying(int64_t loss_ns) const {
    return loss_ns >= static_cast<int64_t>(kWorthSaying * static_cast<double>(ns));
  }
};

MeanStep MeanOfRanks(const std::vector<RankWaterfall>& waterfalls) {
  MeanStep mean;
  for (const RankWaterfall& waterfall : waterfalls) {
    if (waterfall.counted == 0) continue;
    ++mean.ranks;
    mean.ns += waterfall.mean_step;
    for (size_t c = 0; c < kCauses; ++c) mean.times[c] += waterfall.mean[c];
    mean.has_steps &= !waterfall.steps.source.empty();
    if (waterfall.steps.is_period) mean.noun = "period";
  }
  if (mean.ranks == 0) return mean;
  mean.ns /= mean.ranks;
  for (int64_t& ns : mean.times) ns /= mean.ranks;
  return mean;
}

// " of each 412 ms step"
std::string OfWhat(const MeanStep& mean) {
  return mean.has_steps ? fmt::format(" of each {} {}", FormatNs(mean.ns), mean.noun)
                        : fmt::format(" of {} (no steps found)", FormatNs(mean.ns));
}

// ": forward 40.0 %, backward 50.0 %": the largest first, at most three.
std::string DescribeHostTimes(const MeanStep& mean) {
  std::vector<std::pair<int64_t, Cause>> parts;
  for (size_t c = 0; c < kCauses; ++c) {
    if (mean.IsWorthSaying(mean.times[c])) {
      parts.emplace_back(mean.times[c], static_cast<Cause>(c));
    }
  }
  // Nothing is known of what it did.
  if (parts.size() == 1 && parts[0].second == Cause::kHost) return "";
  std::sort(parts.rbegin(), parts.rend());
  if (parts.size() > kPartsSaid) parts.resize(kPartsSaid);
  std::string text;
  for (const auto& [ns, cause] : parts) {
    text += fmt::format("{} {} ({}) {}", text.empty() ? "" : ",", FormatNs(ns),
                        FormatShare(ns, mean.ns), DescribeHostsTime(cause));
  }
  return text;
}

std::string OnWhichRank(const Run& run, const Loss& loss, int64_t ranks) {
  const Trace& trace = run.traces[loss.trace];
  if (loss.blames || (ranks == 1 && !trace.info.rank)) return "";
  return (ranks > 1 ? ", most on " : ", on ") + RankName(trace);
}

// The run has no device that could lose anything.
Verdict JudgeHosts(const Run& run, const std::vector<RankWaterfall>& waterfalls,
                   const MeanStep& mean) {
  const std::vector<Straggler> stragglers =
      FindStragglers(run, MatchDeviceOrHostCollectives(run), waterfalls);
  Verdict verdict{
      .sentence = fmt::format("Nothing ran on a device: all{} is the host's time.", OfWhat(mean)),
      .on_host = true,
      .losses = FindLosses(run, waterfalls, stragglers, mean.ranks),
      .mean_step = mean.ns};
  std::erase_if(verdict.losses, [](const Loss& loss) { return loss.cause == Cause::kHost; });
  for (Loss& loss : verdict.losses) {
    if (!loss.blames) loss.finding = DescribeHostsTime(loss.cause);
  }
  if (const std::string times = DescribeHostTimes(mean); !times.empty()) {
    verdict.sentence.back() = ':';
    verdict.sentence += times + ".";
  }
  if (stragglers.empty() || !mean.IsWorthSaying(stragglers[0].caused_wait_ns)) return verdict;
  int64_t wait = stragglers[0].caused_wait_ns;
  if (TakeTurns(stragglers)) {
    for (size_t i = 1; i < stragglers.size(); ++i) wait += stragglers[i].caused_wait_ns;
  }
  verdict.sentence += fmt::format(" In {} ({}) of it {}.", FormatNs(wait),
                                  FormatShare(wait, mean.ns), DescribeStragglers(run, stragglers));
  return verdict;
}

// What the path bears of waiting: of what the late rank does longer than the others, if that is
// known, and of all that it does if not.
int64_t RecoverableOfWait(const Run& run, const std::vector<CauseTimes>& borne,
                          const Straggler& straggler) {
  int64_t sum = 0;
  for (size_t t = 0; t < borne.size(); ++t) {
    const std::optional<uint32_t> rank = run.traces[t].info.rank;
    if (t != straggler.trace && (!rank || rank != run.traces[straggler.trace].info.rank)) continue;
    sum += straggler.cause ? borne[t][static_cast<size_t>(*straggler.cause)]
                           : std::accumulate(borne[t].begin(), borne[t].end(), int64_t{0});
  }
  return straggler.cause ? std::min(sum, straggler.excess_ns) : sum;
}

void AddRecoverable(const Run& run, const std::vector<RankWaterfall>& waterfalls,
                    const std::vector<Straggler>& stragglers, std::vector<Loss>* losses) {
  const std::vector<CauseTimes> borne = BorneByCriticalPath(run, waterfalls);
  for (Loss& loss : *losses) {
    if (loss.cause == Cause::kWait) {
      if (!stragglers.empty()) {
        loss.recoverable_ns = std::min(loss.ns, RecoverableOfWait(run, borne, stragglers[0]));
      }
      continue;
    }
    // The path changes ranks within a step: no rank can win back more than it loses.
    int64_t most = 0;
    for (size_t t = 0; t < borne.size(); ++t) {
      loss.recoverable_ns += borne[t][static_cast<size_t>(loss.cause)];
      most = std::max(most, waterfalls[t].mean[static_cast<size_t>(loss.cause)]);
    }
    loss.recoverable_ns = std::min(loss.recoverable_ns, most);
  }
}

void AddPlaces(const Run& run, const std::vector<RankWaterfall>& waterfalls, const MeanStep& mean,
               std::vector<Loss>* losses) {
  const LossPlaces places = FindLossPlaces(run, waterfalls);
  for (Loss& loss : *losses) {
    if (loss.blames || !mean.IsWorthSaying(loss.ns)) continue;
    const LossPlace& place = places[static_cast<size_t>(loss.cause)];
    loss.finding += place.waits_for + place.where;
  }
}

// Empty where all of the largest loss can be won back, as far as the critical path says.
std::string DescribeRecoverable(const std::vector<Loss>& losses, const MeanStep& mean) {
  const Loss& largest = losses[0];
  std::string text;
  if (!mean.IsWorthSaying(largest.recoverable_ns)) {
    text = " The critical path bears none of it: none of it is recoverable.";
  } else if (mean.IsWorthSaying(largest.ns - largest.recoverable_ns)) {
    text =
        fmt::format(" Recoverable of it is at most {} ({}): that much is on the critical path.",
                    FormatNs(largest.recoverable_ns), FormatShare(largest.recoverable_ns, mean.ns));
  }
  const auto best = std::max_element(
      losses.begin(), losses.end(),
      [](const Loss& a, const Loss& b) { return a.recoverable_ns < b.recoverable_ns; });
  if (best->cause != largest.cause &&
      mean.IsWorthSaying(best->recoverable_ns - largest.recoverable_ns)) {
    text += fmt::format(" Most is recoverable, at most {} ({}), of this: {}.",
                        FormatNs(best->recoverable_ns), FormatShare(best->recoverable_ns, mean.ns),
                        best->finding);
  }
  return text;
}

Verdict JudgeDevices(const Run& run, const std::vector<RankWaterfall>& waterfalls,
                     const MeanStep& mean) {
  const std::vector<Straggler> stragglers =
      FindStragglers(run, MatchDeviceOrHostCollectives(run), waterfalls);
  Verdict verdict{.sentence = {},
                  .losses = FindLosses(run, waterfalls, stragglers, mean.ranks),
                  .mean_step = mean.ns};
  AddRecoverable(run, waterfalls, stragglers, &verdict.losses);
  if (verdict.losses.empty() || !mean.IsWorthSaying(verdict.losses[0].ns)) {
    verdict.sentence = fmt::format(
        "No loss is worth more than 1 %{}: the devices compute {} of the time.", OfWhat(mean),
        FormatShare(mean.times[static_cast<size_t>(Cause::kCompute)], mean.ns));
    return verdict;
  }
  AddPlaces(run, waterfalls, mean, &verdict.losses);
  const Loss& largest = verdict.losses[0];
  verdict.sentence = fmt::format("The largest loss is {}{} ({}): {}{}.", FormatNs(largest.ns),
                                 OfWhat(mean), FormatShare(largest.ns, mean.ns), largest.finding,
                                 OnWhichRank(run, largest, mean.ranks)) +
                     DescribeRecoverable(verdict.losses, mean);
  return verdict;
}

// Empty: the run's files hold times.
std::string WhyNoTimes(const Run& run) {
  for (const Trace& trace : run.traces) {
    if (trace.origin != TraceOrigin::kExecution) continue;
    return fmt::format(
        "an execution trace has no times, and {} has nothing else; name torch.profiler's file of "
        "the same steps beside it",
        RankName(trace));
  }
  const bool is_memory = std::all_of(run.traces.begin(), run.traces.end(), [](const Trace& trace) {
    return trace.origin == TraceOrigin::kMemory;
  });
  return is_memory && !run.traces.empty()
             ? "a file of the memory profiler says who held memory, and nothing of time"
             : "";
}

struct Line {
  Loss loss;
  const Trace* trace = nullptr;
  int64_t mean_step = 0;
  bool on_host = false;
};

const ColumnsOf<Line> kColumns = {
    {"cause", Unit::kText, "The cause that takes time from a step.",
     [](const Line& line) { return std::string(NameOf(line.loss.cause)); }},
    {"loss_ns", Unit::kNs, "The time a step that it takes, as a mean over the ranks.",
     [](const Line& line) { return line.loss.ns; }},
    {"share_percent", Unit::kPercent, "The loss as a share of the mean step.",
     [](const Line& line) { return Percent(line.loss.ns, line.mean_step); }},
    {"recoverable_ns", Unit::kNs,
     "The time a step that the job can win back, by the critical path.",
     [](const Line& line) { return line.on_host ? Cell() : Cell(line.loss.recoverable_ns); }},
    {"rank", Unit::kCount, "The rank that loses most to it, or that the others wait for.",
     [](const Line& line) { return RankCell(*line.trace); }},
    {"finding", Unit::kText, "A sentence that names the phase, module, line or rank.",
     [](const Line& line) { return line.loss.finding; }, Shown::kProse},
};

// "Out of memory: 1073741824 bytes were asked for. "; empty: no snapshot of memory says so.
std::string HowItRanOut(const Run& run) {
  for (const Trace& trace : run.traces) {
    if (trace.origin != TraceOrigin::kMemory) continue;
    for (const std::string& note : trace.info.notes) {
      if (note.starts_with("out of memory")) return fmt::format("O{}. ", note.substr(1));
    }
  }
  return "";
}

Verdict JudgeTimes(const Run& run) {
  if (const std::string jobs = DescribeJobs(run); !jobs.empty()) {
    return {
        .sentence = fmt::format("No verdict: {}.", jobs), .refused = true, .nothing_missing = true};
  }
  if (const std::string why = WhyNoTimes(run); !why.empty()) {
    return {
        .sentence = fmt::format("No verdict: {}.", why), .refused = true, .nothing_missing = true};
  }
  if (const std::string missing = WhatIsMissing(run); !missing.empty()) {
    return {
        .sentence = fmt::format("No verdict: {}, so what the time went to is not known.", missing),
        .refused = true};
  }
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const MeanStep mean = MeanOfRanks(waterfalls);
  if (mean.ranks == 0) {
    return {.sentence = "No verdict: nothing ran on a device.", .on_host = true};
  }
  if (const std::string disagree = WhatDisagrees(run, waterfalls); !disagree.empty()) {
    return {.sentence = fmt::format("No verdict: {}: two ways to one number disagree.", disagree),
            .refused = true,
            .nothing_missing = true};
  }
  return AnythingRanOnADevice(run) ? JudgeDevices(run, waterfalls, mean)
                                   : JudgeHosts(run, waterfalls, mean);
}

}  // namespace

Verdict Judge(const Run& run) {
  Verdict verdict = JudgeTimes(run);
  verdict.sentence.insert(0, HowItRanOut(run));
  return verdict;
}

Table TabulateVerdict(const Run& run, const ReportOptions&) {
  Verdict verdict = Judge(run);
  std::vector<Line> lines;
  for (Loss& loss : verdict.losses) {
    const Trace& trace = run.traces[loss.trace];
    lines.push_back({std::move(loss), &trace, verdict.mean_step, verdict.on_host});
  }
  Table table = TableOf(std::move(verdict.sentence), kColumns, lines);
  if (std::string ahead = DescribeHostAhead(run); !verdict.refused && !ahead.empty()) {
    table.notes.push_back(std::move(ahead));
  }
  if (verdict.refused && !verdict.nothing_missing) {
    table.notes.push_back("ranktap report RUN losses lists what is missing");
  }
  if (!verdict.refused) {
    table.notes.push_back("ranktap report RUN insights says what to do about it");
  }
  if (verdict.on_host) {
    table.notes.push_back("ranktap report RUN ops, modules and ranges say what the host does");
  }
  return table;
}

}  // namespace ranktap::collector

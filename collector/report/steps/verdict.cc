#include "collector/report/steps/verdict.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/report/cells.h"
#include "collector/report/claims/claim.h"
#include "collector/report/claims/late_rank.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/jobs.h"
#include "collector/report/steps/trusted_time.h"
#include "collector/report/steps/verdict_words.h"

namespace ranktap::collector {
namespace {

constexpr size_t kPartsSaid = 3;

bool AnythingRanOnADevice(const Run& run) {
  return std::any_of(run.traces.begin(), run.traces.end(), [](const Trace& trace) {
    return trace.kernels.size() + trace.copies.size() + trace.memsets.size() > 0;
  });
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
Verdict JudgeHosts(const Run& run, const MeanStep& mean) {
  Verdict verdict{
      .sentence = fmt::format("Nothing ran on a device: all{} is the host's time.", mean.OfWhat()),
      .on_host = true,
      .losses = FindLosses(run, mean),
      .mean_step = mean.ns};
  std::erase_if(verdict.losses, [](const Loss& loss) { return loss.cause == Cause::kHost; });
  for (Loss& loss : verdict.losses) {
    if (!loss.blames) loss.finding = DescribeHostsTime(loss.cause);
  }
  if (const std::string times = DescribeHostTimes(mean); !times.empty()) {
    verdict.sentence.back() = ':';
    verdict.sentence += times + ".";
  }
  const int64_t wait = ExposedWaitFor(run, StragglersOf(run));
  if (!mean.IsWorthSaying(wait)) return verdict;
  verdict.sentence += fmt::format(" In {} ({}) of it {}.", FormatNs(wait),
                                  FormatShare(wait, mean.ns), DescribeLateRank(run));
  return verdict;
}

// Empty where all of the largest loss can be won back, as far as the critical path says.
std::string DescribeRecoverable(const Run& run, const std::vector<Loss>& losses,
                                const MeanStep& mean) {
  const Loss& largest = losses[0];
  std::string text;
  if (!largest.recoverable_known) {
    text = fmt::format(" How much of it can be won back is undecided: {}.",
                       RulingOn(run, Claim::kRecoverable).why);
  } else if (!mean.IsWorthSaying(largest.recoverable_ns)) {
    text = " The critical path bears none of it: none of it is recoverable.";
  } else if (mean.IsWorthSaying(largest.ns - largest.recoverable_ns)) {
    text =
        fmt::format(" Recoverable of it is at most {} ({}): that much is on the critical path.",
                    FormatNs(largest.recoverable_ns), FormatShare(largest.recoverable_ns, mean.ns));
  }
  const auto best = std::max_element(
      losses.begin(), losses.end(),
      [](const Loss& a, const Loss& b) { return a.recoverable_ns < b.recoverable_ns; });
  if (best->cause != largest.cause && best->recoverable_known &&
      mean.IsWorthSaying(best->recoverable_ns - largest.recoverable_ns)) {
    text += fmt::format(" Most is recoverable, at most {} ({}), of this: {}.",
                        FormatNs(best->recoverable_ns), FormatShare(best->recoverable_ns, mean.ns),
                        best->finding);
  }
  return text;
}

Verdict JudgeDevices(const Run& run, const MeanStep& mean) {
  Verdict verdict{.sentence = {}, .losses = FindLosses(run, mean), .mean_step = mean.ns};
  AddRecoverable(run, &verdict.losses);
  if (verdict.losses.empty() || !mean.IsWorthSaying(verdict.losses[0].ns)) {
    verdict.sentence = fmt::format(
        "No loss is worth more than 1 %{}: the devices compute {} of the time.", mean.OfWhat(),
        FormatShare(mean.times[static_cast<size_t>(Cause::kCompute)], mean.ns));
    return verdict;
  }
  AddPlaces(run, mean, &verdict.losses);
  const Loss& largest = verdict.losses[0];
  verdict.sentence = fmt::format("The largest loss is {}{} ({}): {}{}.", FormatNs(largest.ns),
                                 mean.OfWhat(), FormatShare(largest.ns, mean.ns), largest.finding,
                                 OnWhichRank(run, largest, mean.ranks)) +
                     DescribeRecoverable(run, verdict.losses, mean);
  if (const Ruling& ruling = RulingOn(run, Claim::kTransfer);
      largest.cause == Cause::kTransfer && ruling.is_undecided()) {
    verdict.sentence +=
        fmt::format(" How much of it is waiting for other ranks is undecided: {}.", ruling.why);
  }
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
     "The time a step that the job can win back, by the critical path; empty: undecided.",
     [](const Line& line) {
       return line.on_host || !line.loss.recoverable_known ? Cell()
                                                           : Cell(line.loss.recoverable_ns);
     }},
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
  return AnythingRanOnADevice(run) ? JudgeDevices(run, mean) : JudgeHosts(run, mean);
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

#include "collector/report/steps/verdict.h"
#include "collector/facts/causes/waterfall.h"
#include "collector/report/reports.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

#include "collector/facts/causes/pass_places.h"
#include "collector/facts/samples/host_cause_lines.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/report/capture/rank_summary.h"
#include "collector/report/cells.h"
#include "collector/report/claims/claim.h"
#include "collector/report/claims/late_loader.h"
#include "collector/report/claims/late_rank.h"
#include "collector/report/claims/transfer.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/find_insights.h"
#include "collector/report/jobs.h"
#include "collector/report/memory/memory_tables.h"
#include "collector/report/steps/bad_end.h"
#include "collector/report/steps/host_losses.h"
#include "collector/report/steps/loss_place.h"
#include "collector/report/steps/message_waits.h"
#include "collector/report/steps/model_calls.h"
#include "collector/report/steps/recoverable.h"
#include "collector/report/steps/trusted_time.h"
#include "collector/report/steps/unlike_steps.h"
#include "collector/report/steps/verdict_facts.h"
#include "collector/report/steps/verdict_scope.h"
#include "collector/report/steps/verdict_words.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

constexpr size_t kPartsSaid = 3;

using LinesByCause = std::array<std::string, kCauses>;

// "waiting for data, at train.py:12 (batches)"; "in the forward pass (most in Net.router), at ..."
std::string DescribeHostsLine(Cause cause, const LinesByCause& lines,
                              const std::string& in_pass = "") {
  const std::string& line = lines[static_cast<size_t>(cause)];
  const std::string text = std::string(DescribeHostsTime(cause)) + in_pass;
  return line.empty() ? text : text + ", at " + line;
}

// " (most in Net.router)": of the rank that spends most on the pass. Empty: nothing has half of
// it.
std::string InPass(const Run& run, Cause cause) {
  if (cause != Cause::kForward && cause != Cause::kBackward) return "";
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const auto most = std::ranges::max_element(waterfalls, {}, [cause](const RankWaterfall& of) {
    return of.mean[static_cast<size_t>(cause)];
  });
  const PassPlaces places =
      PlacesInPasses(run.traces[static_cast<size_t>(most - waterfalls.begin())], *most);
  const std::string& place = cause == Cause::kForward ? places.forward : places.backward;
  return place.empty() ? "" : fmt::format(" (most in {})", place);
}

// ": forward 40.0 %, backward 50.0 %": the largest first, at most three.
std::string DescribeHostTimes(const Run& run, const MeanStep& mean, const std::vector<Loss>& places,
                              const LinesByCause& lines) {
  std::vector<std::pair<int64_t, std::string>> parts;
  for (size_t c = kCauses; c-- > 0;) {
    const auto cause = static_cast<Cause>(c);
    if (cause == Cause::kHost || !mean.IsWorthSaying(mean.times[c])) continue;
    // Not of the rank that waits most: what is said here adds up to the step.
    parts.emplace_back(mean.times[c], DescribeHostsLine(cause, lines, InPass(run, cause)));
  }
  for (const Loss& place : places) parts.emplace_back(place.ns, place.finding);
  // Nothing is known of what it did.
  if (parts.size() == 1 && parts[0].second == DescribeHostsTime(Cause::kHost)) return "";
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  if (parts.size() > kPartsSaid) parts.resize(kPartsSaid);
  std::string text;
  for (const auto& [ns, what] : parts) {
    text += fmt::format("{} {} ({}) {}", text.empty() ? "" : ",", FormatNs(ns),
                        FormatShare(ns, mean.ns), what);
  }
  return text;
}

std::string OnWhichRank(const Run& run, const Loss& loss, int64_t ranks) {
  const Trace& trace = run.traces[loss.trace];
  if (loss.blames || (ranks == 1 && !trace.info.rank)) return "";
  return (ranks > 1 ? ", most on " : ", on ") + RankName(trace);
}

// " The loader is late because ...", where waiting for it is the largest of the losses.
std::string WhyLoaderIsLate(const Run& run, const std::vector<Loss>& losses) {
  if (losses.empty() || losses[0].cause != Cause::kDataLoading) return "";
  const std::string why = DescribeLateLoader(run);
  return why.empty() ? "" : " " + why;
}

// The run has no device that could lose anything.
Verdict JudgeHosts(const Run& run, const MeanStep& mean) {
  std::string why = WhyNoWork(run, "");
  if (!why.empty() && why[0] >= 'a' && why[0] <= 'z')
    why[0] = static_cast<char>(why[0] - 'a' + 'A');
  Verdict verdict{
      .sentence = why.empty()
                      ? fmt::format("Without a device all{} is the host's time.", mean.OfWhat())
                      : fmt::format("{}: what is known{} is the host's time.", why, mean.OfWhat()),
      .on_host = true,
      .losses = FindLosses(run),
      .mean_step = mean.ns};
  const LinesByCause lines = LinesOfHosts(run);
  const std::string calls = why.empty() ? DescribeCalls(run) : "";
  if (!calls.empty()) verdict.sentence = calls;
  std::erase_if(verdict.losses, [](const Loss& loss) { return loss.cause == Cause::kHost; });
  for (Loss& loss : verdict.losses) {
    if (!loss.blames) loss.finding = DescribeHostsLine(loss.cause, lines);
  }
  std::vector<Loss> places = LossesByPlace(run, mean.ranks);
  std::erase_if(places, [&mean](const Loss& loss) { return !mean.IsWorthSaying(loss.ns); });
  if (const std::string times = DescribeHostTimes(run, mean, places, lines);
      calls.empty() && !times.empty()) {
    verdict.sentence.back() = ':';
    verdict.sentence += times + ".";
  }
  verdict.losses.insert(verdict.losses.end(), places.begin(), places.end());
  SortRows(&verdict.losses, [](const Loss& a, const Loss& b) { return a.ns > b.ns; });
  verdict.sentence += WhyLoaderIsLate(run, verdict.losses);
  const int64_t wait = ExposedWaitFor(run, StragglersOf(run));
  if (!mean.IsWorthSaying(wait)) {
    verdict.sentence += DescribeMessageWaits(run);
    return verdict;
  }
  // Ranks that make longer steps than the mean of all have no share of that mean.
  const std::string part =
      wait > mean.ns ? fmt::format("{} of a step of theirs", FormatNs(wait))
                     : fmt::format("{} ({}) of it", FormatNs(wait), FormatShare(wait, mean.ns));
  verdict.sentence += fmt::format(" In {} {}.", part, DescribeLateRank(run));
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
  const auto known = [](const Loss& loss) {
    return loss.recoverable_known ? loss.recoverable_ns : 0;
  };
  const auto best = std::ranges::max_element(losses, {}, known);
  if (!mean.IsWorthSaying(known(*best) - known(largest))) return text;
  return text + fmt::format(" {} at most {} ({}), of this: {}.",
                            largest.recoverable_known ? "Most is recoverable,"
                                                      : "Known to be recoverable is",
                            FormatNs(best->recoverable_ns),
                            FormatShare(best->recoverable_ns, mean.ns), best->finding);
}

// "At most 6.100 ms of each 35.18 ms step (17.3 %) can be saved (memory-bound): 484 kernels ...",
// where a rule saves more than any loss would: what devices compute is no loss. Else empty.
std::string DescribeLargestSaving(const Run& run, const std::vector<Loss>& losses,
                                  const MeanStep& mean) {
  const auto of_compute = [](const Insight& insight) {
    const std::span<const InsightRule> rules = AllInsightRules();
    const auto rule = std::ranges::find(rules, insight.rule, &InsightRule::name);
    return rule != rules.end() && rule->of_compute;
  };
  const std::vector<Insight>& list = InsightsForVerdict(run);
  const auto found = std::ranges::find_if(list, of_compute);  // the largest saving first
  if (found == list.end()) return "";
  const Insight& best = *found;
  int64_t of_losses = 0;
  for (const Loss& loss : losses) of_losses = std::max(of_losses, loss.ns);
  const int64_t saving = best.saving_ns.value_or(0);
  if (saving > mean.ns || !mean.IsWorthSaying(saving - of_losses)) return "";
  std::string finding = best.finding.substr(0, best.finding.find(';'));
  if (finding.ends_with('.')) finding.pop_back();
  return fmt::format("At most {}{} ({}) can be saved ({}): {}. ", FormatNs(saving), mean.OfWhat(),
                     FormatShare(saving, mean.ns), best.rule, finding);
}

// "Rank 1: The main thread is ready to run and has no CPU for 30.00 ms of each 60.00 ms step
// (50.0 %); ...; most of it at train.py:97 (main) (descheduled).", where that takes a tenth of a
// step. It comes first, but behind a wait for a rank or for data that takes more.
void AddHostsTaken(const Run& run, const MeanStep& mean, Verdict* verdict) {
  constexpr int64_t kLeastPart = 10;
  const Insight* worst = nullptr;
  for (const Insight& insight : InsightsForVerdict(run)) {
    const std::span<const InsightRule> rules = AllInsightRules();
    const auto rule = std::ranges::find(rules, insight.rule, &InsightRule::name);
    if (rule == rules.end() || !rule->of_host || insight.lost_ns * kLeastPart < mean.ns) continue;
    // Where a device is busy meanwhile, nothing is lost by it.
    if (insight.saving_ns && *insight.saving_ns * kLeastPart < mean.ns) continue;
    if (worst == nullptr || insight.lost_ns > worst->lost_ns) worst = &insight;
  }
  if (worst == nullptr) return;
  std::string finding = worst->finding.substr(0, worst->finding.size() - 1);
  if (mean.ranks > 1) {
    std::string name = RankName(run.traces[worst->trace]);
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    finding = fmt::format("{}: {}", name, finding);
  }
  if (!worst->where.empty()) finding += fmt::format("; most of it at {}", worst->where);
  finding += fmt::format(" ({}).", worst->rule);
  const bool is_behind = std::ranges::any_of(verdict->losses, [worst](const Loss& loss) {
    // A rank that is late for want of a CPU is late by about that much.
    const int64_t least = loss.blames && loss.trace == worst->trace ? loss.ns / 2 : loss.ns;
    return (loss.blames || loss.cause == Cause::kDataLoading) && least > worst->lost_ns;
  });
  verdict->sentence =
      is_behind ? verdict->sentence + " " + finding : finding + " " + verdict->sentence;
}

Verdict JudgeDevices(const Run& run, const MeanStep& mean) {
  Verdict verdict{.sentence = {}, .losses = FindLosses(run), .mean_step = mean.ns};
  AddRecoverable(run, &verdict.losses);
  if (verdict.losses.empty() || !mean.IsWorthSaying(verdict.losses[0].ns)) {
    verdict.sentence = fmt::format(
        "No loss is worth more than 1 %{}: the devices compute {} of the time.", mean.OfWhat(),
        FormatShare(mean.times[static_cast<size_t>(Cause::kCompute)], mean.ns));
    verdict.sentence.insert(0, DescribeLargestSaving(run, verdict.losses, mean));
    return verdict;
  }
  AddPlaces(run, mean, &verdict.losses);
  const Loss& largest = verdict.losses[0];
  verdict.sentence = fmt::format("The largest loss is {}{} ({}): {}{}.", FormatNs(largest.ns),
                                 mean.OfWhat(), FormatShare(largest.ns, mean.ns), largest.finding,
                                 OnWhichRank(run, largest, mean.ranks)) +
                     DescribeRecoverable(run, verdict.losses, mean);
  verdict.sentence += WhyLoaderIsLate(run, verdict.losses);
  if (const Ruling& ruling = RulingOn(run, Claim::kTransfer);
      largest.cause == Cause::kTransfer && ruling.is_undecided()) {
    verdict.sentence +=
        fmt::format(" How much of it is waiting for other ranks is undecided: {}.", ruling.why);
  }
  verdict.sentence.insert(0, DescribeLargestSaving(run, verdict.losses, mean));
  return verdict;
}

// " The main thread was mostly at train.py:97 (main)." Empty: nobody looked, or no line had most.
std::string WhereHostsWere(const Run& run) {
  LineTally lines;
  for (const Trace& trace : run.traces) {
    const HostSamples& samples = SamplesOf(trace);
    const auto [start, end] = samples.span();
    lines.Add(samples, start, end);
  }
  const std::string line = lines.Most();
  return line.empty() ? "" : fmt::format(" The main thread was mostly at {}.", line);
}

struct VerdictLine {
  Loss loss;
  const Trace* trace = nullptr;
  int64_t mean_step = 0;
  bool on_host = false;
  bool tells_waiting = true;
};

const ColumnsOf<VerdictLine> kVerdictColumns = {
    {"cause", Unit::kText, "The cause that takes time from a step.",
     [](const VerdictLine& line) {
       return std::string(SaidName(line.loss.cause, line.tells_waiting));
     }},
    {"loss_ns", Unit::kNs,
     "The time a step that it takes, as a mean over the ranks; waits for one rank: of the rank "
     "that waits most.",
     [](const VerdictLine& line) { return line.loss.ns; }},
    {"share_percent", Unit::kPercent, "The loss as a share of the mean step.",
     [](const VerdictLine& line) { return Percent(line.loss.ns, line.mean_step); }},
    {"recoverable_ns", Unit::kNs,
     "The time a step that the job can win back, by the critical path; empty: undecided.",
     [](const VerdictLine& line) {
       return line.on_host || !line.loss.recoverable_known ? Cell()
                                                           : Cell(line.loss.recoverable_ns);
     }},
    {"rank", Unit::kCount, "The rank that loses most to it, or that the others wait for.",
     [](const VerdictLine& line) { return RankCell(*line.trace); }},
    {"finding", Unit::kText, "A sentence that names the phase, module, line or rank.",
     [](const VerdictLine& line) { return line.loss.finding; }, Shown::kProse},
};

Verdict JudgeTimes(const Run& run) {
  if (const std::string jobs = DescribeJobs(run); !jobs.empty()) {
    return {
        .sentence = fmt::format("No verdict: {}.", jobs), .refused = true, .nothing_missing = true};
  }
  if (const std::string why = WhyNoTimes(run); !why.empty()) {
    const bool is_memory = run.traces[0].origin == TraceOrigin::kMemory;
    return {
        .sentence = fmt::format("{}No verdict: {}.", is_memory ? DescribePeakMemory(run) : "", why),
        .refused = true,
        .nothing_missing = true};
  }
  AskFirstFacts(run);
  if (const std::string missing = WhatIsMissing(run); !missing.empty()) {
    return {
        .sentence = fmt::format("No verdict: {}, so what the time went to is not known.", missing),
        .refused = true};
  }
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  const MeanStep mean = MeanOfRanks(waterfalls);
  if (mean.ranks == 0) {
    return {.sentence = fmt::format("No verdict: {}.{}", WhyNoWork(run), WhereHostsWere(run)),
            .on_host = true};
  }
  if (!AnythingRanOnADevice(run) && std::ranges::all_of(run.traces, HasRangesAlone)) {
    return {.sentence = "No verdict: only ranges are recorded, so what a device did is not known.",
            .refused = true,
            .nothing_missing = true};
  }
  if (AnythingRanOnADevice(run)) AskDeviceFacts(run);
  if (const std::string disagree = WhatDisagrees(run); !disagree.empty()) {
    return {.sentence = fmt::format("No verdict: {}: two ways to one number disagree.", disagree),
            .refused = true,
            .nothing_missing = true};
  }
  Verdict verdict = AnythingRanOnADevice(run) ? JudgeDevices(run, mean) : JudgeHosts(run, mean);
  if (!mean.has_steps) verdict.sentence += " No steps were found.";
  AddHostsTaken(run, mean, &verdict);
  verdict.sentence.insert(0, HowLittle(run, waterfalls) + DescribeUnlikeSteps(run));
  return verdict;
}

}  // namespace

Verdict Judge(const Run& run) {
  Verdict verdict = JudgeTimes(run);
  verdict.sentence.insert(0, DescribeEnd(run));
  return verdict;
}

Table TabulateVerdict(const Run& run, const ReportOptions&) {
  Verdict verdict = Judge(run);
  std::vector<VerdictLine> lines;
  for (Loss& loss : verdict.losses) {
    const Trace& trace = run.traces[loss.trace];
    lines.push_back(
        {std::move(loss), &trace, verdict.mean_step, verdict.on_host, TellsWaiting(run)});
  }
  Table table = TableOf(std::move(verdict.sentence), kVerdictColumns, lines);
  if (std::string ahead = DescribeHostAhead(run); !verdict.refused && !ahead.empty()) {
    table.notes.push_back(std::move(ahead));
  }
  if (std::string covered = WhatIsCovered(run); !verdict.refused && !covered.empty()) {
    table.notes.push_back(std::move(covered));
  }
  if (verdict.refused && !verdict.nothing_missing) {
    table.notes.push_back("ranktap report RUN losses lists what is missing");
  }
  if (std::ranges::any_of(lines, [](const VerdictLine& line) { return line.loss.blames; })) {
    table.notes.push_back(
        "waits for one rank are those of the rank that waits most; waterfall has the mean of all");
  }
  if (!verdict.refused) {
    table.notes.push_back("ranktap report RUN insights says what to do about it");
  }
  if (std::ranges::any_of(run.traces, HasDeviceMemoryAlone)) {
    table.notes.push_back(
        "torch.profiler records a device's work with activities=[ProfilerActivity.CPU, "
        "ProfilerActivity.CUDA]");
  }
  if (verdict.on_host) {
    table.notes.push_back("ranktap report RUN ops modules ranges says what the host does");
  }
  return table;
}

}  // namespace ranktap::collector

// Who took the CPU from a rank's main thread, or kept it from using one: what the kernel counted
// while the agent sampled.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>

#include "collector/facts/samples/host_counts.h"
#include "collector/facts/samples/taken_time.h"
#include "collector/report/human_units.h"
#include "collector/report/insights/rules/all_rules.h"

namespace ranktap::collector {
namespace {

// An idle machine has its timers and its daemons: 0.5 % of a step on two CPUs.
constexpr double kLeastQueuedShare = 0.02, kLeastThrottledShare = 0.01;
// A thread that wants the lock waits up to 5 ms for its turn, and looks are as far apart.
constexpr double kLeastGilShare = 0.03;
constexpr double kLeastReadShare = 0.02;

constexpr std::string_view kNobodyLooked =
    "no thread was sampled: ranktap run --sample 10ms does it";

struct TakenOfStep {
  int64_t lost_ns = 0, count = 0;
  std::string finding, line;
};

Answer AnswerWith(const RankFacts& rank, TakenOfStep taken) {
  Insight insight{.finding = fmt::format("{} {} {} ({})", taken.finding, FormatNs(taken.lost_ns),
                                         rank.OfStep(), FormatShare(taken.lost_ns, rank.step_ns())),
                  .where = std::move(taken.line),
                  .count = taken.count,
                  .lost_ns = taken.lost_ns};
  if (rank.has_device()) {
    insight.saving =
        Saving{.moments = rank.counted(), .causes = kIdleCauses, .most_ns = insight.lost_ns};
  }
  return {.insights = {std::move(insight)}};
}

const TakenTime& TakenOf(const RankFacts& rank) { return TakenOfRanks(rank.run())[rank.index()]; }

bool Lacks(const RankFacts& rank, proto::HostLack what) {
  return CountsOf(rank.trace()).host().empty() || CountsOf(rank.trace()).Lacks(what);
}

}  // namespace

Answer FindCpuThrottled(const RankFacts& rank) {
  const TakenTime& taken = TakenOf(rank);
  if (taken.sampled_ns == 0) return CannotTell(kNobodyLooked);
  if (Lacks(rank, proto::kLacksThrottling)) {
    return CannotTell("the system shows no limit of CPU time (cpu.stat)");
  }
  const int64_t lost = rank.PerStep(taken.throttled_ns);
  if (!rank.IsWorth(lost, kLeastThrottledShare)) return {};
  Answer answer = AnswerWith(
      rank,
      {.lost_ns = lost,
       .count = taken.throttled_periods,
       .finding = "The control group's limit of CPU time keeps the main thread from a CPU for",
       .line = taken.queued.line});
  answer.insights[0].finding +=
      fmt::format("; it was reached in {} of its periods.", FormatCount(taken.throttled_periods));
  return answer;
}

Answer FindDescheduled(const RankFacts& rank) {
  const TakenTime& taken = TakenOf(rank);
  if (taken.sampled_ns == 0) return CannotTell(kNobodyLooked);
  if (Lacks(rank, proto::kLacksQueue)) {
    return CannotTell("the system does not show how long a thread waits for a CPU (schedstat)");
  }
  const int64_t lost = rank.PerStep(taken.queued.ns - taken.throttled_ns);
  const SharedCpus shared = CpusAround(rank.run(), rank.index());
  // Else it is the job's own doing: too-many-threads.
  const bool is_own = shared.AreUsedUp() || AreMoreThreadsThanCpus(rank);
  if (is_own || !rank.IsWorth(lost, kLeastQueuedShare)) return {};
  Answer answer = AnswerWith(rank, {.lost_ns = lost,
                                    .count = static_cast<int64_t>(shared.cpus),
                                    .finding = "The main thread is ready to run and has no CPU for",
                                    .line = taken.queued.line});
  answer.insights[0].finding +=
      fmt::format("; the rank uses {:.1f} of its {}, and something else has the rest.",
                  taken.used_cpus, Counted(CountsOf(rank.trace()).Cpus().size(), "CPU"));
  return answer;
}

Answer FindFarNuma(const RankFacts& rank) {
  const HostCounts& counts = CountsOf(rank.trace());
  std::optional<uint32_t> near;
  for (const v1::Device& device : rank.trace().hello.devices()) {
    const bool is_used = !rank.spans().empty() && rank.spans().front().device == device.id();
    if (is_used) near = counts.NodeOfBus(device.pci_bus());
  }
  if (!near) return CannotTell("the GPU's NUMA node is not known");
  int64_t seen = 0, far = 0;
  std::optional<uint32_t> node;
  for (const ThreadCount& count : counts.threads()) {
    const std::optional<uint32_t> ran_on = counts.NodeOf(count.cpu);
    if (count.thread != rank.trace().hello.process().pid() || !ran_on) continue;
    seen += count.end - count.start;
    if (*ran_on == *near) continue;
    far += count.end - count.start;
    node = ran_on;
  }
  if (seen == 0) return CannotTell("the machine has one NUMA node, or no thread was sampled");
  if (2 * far < seen) return {};
  Insight insight{.finding = fmt::format("The main thread ran on NUMA node {} in {} of the time, "
                                         "and its GPU lies on node {}.",
                                         *node, FormatShare(far, seen), *near),
                  .count = 1,
                  .lost_ns = 0};
  return {.insights = {std::move(insight)}};
}

Answer FindPageFaults(const RankFacts& rank) {
  const TakenTime& taken = TakenOf(rank);
  if (taken.sampled_ns == 0) return CannotTell(kNobodyLooked);
  if (Lacks(rank, proto::kLacksFaults)) {
    return CannotTell("the system does not show the faults of a thread (stat)");
  }
  const int64_t lost = rank.PerStep(taken.faults.ns);
  if (!rank.IsWorth(lost, kLeastReadShare)) return {};
  // A sample with one fault may wait for something else most of its time: nothing that comes less
  // than once a step takes a share of each.
  if (rank.PerStep(taken.faults.count) < 1) return {};
  Answer answer =
      AnswerWith(rank, {.lost_ns = lost,
                        .count = taken.faults.count,
                        .finding = "The main thread waits for pages that are not in memory, for",
                        .line = taken.faults.line});
  answer.insights[0].finding +=
      fmt::format(", in major faults that come {}.", rank.TimesAStep(taken.faults.count));
  return answer;
}

Answer FindGilContention(const RankFacts& rank) {
  const TakenTime& taken = TakenOf(rank);
  if (taken.sampled_ns == 0) return CannotTell(kNobodyLooked);
  const int64_t lost = rank.PerStep(taken.gil.ns);
  if (!rank.IsWorth(lost, kLeastGilShare)) return {};
  Answer answer = AnswerWith(
      rank,
      {.lost_ns = lost,
       .count = 1,
       .finding = taken.gil_holder.empty()
                      ? "The main thread waits for Python's lock (GIL) for"
                      : fmt::format("While another thread runs at {}, the main thread waits for "
                                    "Python's lock (GIL) for",
                                    taken.gil_holder),
       .line = taken.gil.line});
  answer.insights[0].finding += ".";
  return answer;
}

Answer FindSlowRead(const RankFacts& rank) {
  const TakenTime& taken = TakenOf(rank);
  if (taken.sampled_ns == 0) return CannotTell(kNobodyLooked);
  if (Lacks(rank, proto::kLacksBytes)) {
    return CannotTell("the system does not show what a thread reads (io)");
  }
  const int64_t lost = rank.PerStep(taken.reads.ns);
  if (!rank.IsWorth(lost, kLeastReadShare)) return {};
  Answer answer = AnswerWith(rank, {.lost_ns = lost,
                                    .count = 1,
                                    .finding = "The main thread waits for storage for",
                                    .line = taken.reads.line});
  answer.insights[0].finding +=
      fmt::format(", and reads {} of it a step{}{}.",
                  FormatBytes(static_cast<uint64_t>(rank.PerStep(taken.reads.count))),
                  taken.read_files.empty() ? "" : ", from ", taken.read_files);
  return answer;
}

}  // namespace ranktap::collector

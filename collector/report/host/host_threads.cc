#include "collector/report/host/host_threads.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/causes/waterfall.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/samples/host_counts.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

struct ThreadsTime {
  const Trace* trace = nullptr;
  std::string kind;
  std::set<uint32_t> threads, cpus, nodes;
  int64_t ran_ns = 0, queued_ns = 0, forced = 0, voluntary = 0, faults = 0;
  int64_t read_bytes = 0, written_bytes = 0;
  std::optional<int64_t> worst_step;
  int64_t worst_queued_ns = 0;
};

// In the order of rows.
constexpr std::array<std::string_view, 5> kKinds = {"main", "backward", "loader", "other",
                                                    "not Python's"};

// As PyTorch names its threads.
size_t KindOf(const ThreadCount& count, uint32_t main_thread) {
  if (count.thread == main_thread) return 0;
  if (count.name.starts_with("pt_autograd")) return 1;
  return count.name.starts_with("pt_data") ? 2 : 3;
}

int64_t PartIn(const std::vector<Interval>& intervals, int64_t start, int64_t end, int64_t count) {
  if (count == 0) return 0;
  const int64_t ns = Length(Within(intervals, start, end));
  return static_cast<int64_t>(static_cast<double>(count) * static_cast<double>(ns) /
                              static_cast<double>(end - start));
}

void AddCount(const ThreadCount& count, const std::vector<Interval>& when, const HostCounts& counts,
              ThreadsTime* to) {
  const auto part = [&](int64_t of) { return PartIn(when, count.start, count.end, of); };
  if (part(count.end - count.start) == 0) return;
  to->threads.insert(count.thread);
  to->ran_ns += part(count.ran_ns);
  to->queued_ns += part(count.queued_ns);
  to->forced += part(count.forced);
  to->voluntary += part(count.voluntary);
  to->faults += part(count.major_faults);
  to->read_bytes += part(count.read_bytes);
  to->written_bytes += part(count.written_bytes);
  if (count.cpu == proto::kUnknownCpu) return;
  to->cpus.insert(count.cpu);
  if (const auto node = counts.NodeOf(count.cpu)) to->nodes.insert(*node);
}

// Of single steps only samples tell: they are closer together.
void FindWorstStep(const HostSamples& samples, const StepList& steps, ThreadsTime* main) {
  for (const Step& step : steps.list) {
    if (step.warm_up) continue;
    int64_t queued = 0;
    samples.ForEachOfMain(step.start, step.end, [&](const HostSample& sample, int64_t ns) {
      queued +=
          static_cast<int64_t>(static_cast<double>(sample.queued_ns) * static_cast<double>(ns) /
                               static_cast<double>(sample.end - sample.start));
    });
    if (queued <= main->worst_queued_ns) continue;
    main->worst_queued_ns = queued;
    main->worst_step = step.number;
  }
}

std::vector<Interval> WhenOf(const Trace& trace, const RankWaterfall& waterfall) {
  std::vector<Interval> when;
  for (const Step& step : waterfall.steps.list) {
    if (!step.warm_up) when.emplace_back(step.start, step.end);
  }
  const HostCounts& counts = CountsOf(trace);
  if (when.empty() && !counts.host().empty()) {
    when.emplace_back(counts.host().front().start, counts.host().back().end);
  }
  return Merged(std::move(when));
}

std::string Joined(const std::set<uint32_t>& numbers) {
  std::string text;
  for (const uint32_t number : numbers)
    text += fmt::format("{}{}", text.empty() ? "" : ",", number);
  return text;
}

void AddRank(const Trace& trace, const RankWaterfall& waterfall, std::vector<ThreadsTime>* to) {
  const HostCounts& counts = CountsOf(trace);
  const std::vector<Interval> when = WhenOf(trace, waterfall);
  std::map<size_t, ThreadsTime> by_kind;
  for (const ThreadCount& count : counts.threads()) {
    AddCount(count, when, counts, &by_kind[KindOf(count, trace.hello.process().pid())]);
  }
  ThreadsTime& others = by_kind[kKinds.size() - 1];
  for (const HostCount& count : counts.host()) {
    others.ran_ns += PartIn(when, count.start, count.end, count.others_ran_ns);
    others.queued_ns += PartIn(when, count.start, count.end, count.others_queued_ns);
  }
  if (by_kind.contains(0)) FindWorstStep(SamplesOf(trace), waterfall.steps, &by_kind[0]);
  for (auto& [kind, row] : by_kind) {
    if (row.ran_ns + row.queued_ns == 0) continue;
    row.trace = &trace;
    row.kind = kKinds[kind];
    to->push_back(std::move(row));
  }
}

const ColumnsOf<ThreadsTime> kHostThreadsColumns = {
    {"rank", Unit::kCount, "The rank.",
     [](const ThreadsTime& row) { return RankCell(*row.trace); }},
    {"thread", Unit::kText,
     "The main thread, autograd's, those that PyTorch's loader has in this process, other ones of "
     "Python, and all that Python does not know.",
     [](const ThreadsTime& row) { return row.kind; }},
    {"on_cpu_ns", Unit::kNs, "The time in which a CPU ran them.",
     [](const ThreadsTime& row) { return row.ran_ns; }},
    {"no_cpu_ns", Unit::kNs, "The time in which they were ready to run and no CPU ran them.",
     [](const ThreadsTime& row) { return row.queued_ns; }},
    {"worst_step", Unit::kCount, "The step in which the main thread had no CPU for the longest.",
     [](const ThreadsTime& row) { return row.worst_step ? Cell(*row.worst_step) : Cell(); }},
    {"in_worst_step_ns", Unit::kNs, "For how long it had none in that step.",
     [](const ThreadsTime& row) { return row.worst_step ? Cell(row.worst_queued_ns) : Cell(); }},
    {"stopped", Unit::kCount, "How often another thread was given their CPU though they had work.",
     [](const ThreadsTime& row) { return row.forced; }},
    {"waits", Unit::kCount, "How often they gave their CPU back to wait.",
     [](const ThreadsTime& row) { return row.voluntary; }, Shown::kDetail},
    {"major_faults", Unit::kCount, "How often they met a page that was not in memory.",
     [](const ThreadsTime& row) { return row.faults; }},
    {"read_bytes", Unit::kBytes, "What they read from storage.",
     [](const ThreadsTime& row) { return row.read_bytes; }},
    {"written_bytes", Unit::kBytes, "What they wrote to it.",
     [](const ThreadsTime& row) { return row.written_bytes; }, Shown::kDetail},
    {"cpus", Unit::kText, "The CPUs that they were found on.",
     [](const ThreadsTime& row) { return Joined(row.cpus); }, Shown::kDetail},
    {"numa_nodes", Unit::kText, "The NUMA nodes of these CPUs.",
     [](const ThreadsTime& row) { return Joined(row.nodes); }, Shown::kDetail},
};

struct Lacking {
  proto::HostLack bit;
  std::string_view what;
};
constexpr Lacking kLacking[] = {
    {proto::kLacksQueue, "time without a CPU (schedstat)"},
    {proto::kLacksFaults, "major faults (stat)"},
    {proto::kLacksBytes, "bytes of storage (io)"},
    {proto::kLacksSwitches, "switches (status)"},
    {proto::kLacksThrottling, "limits of CPU time (cpu.stat)"},
    {proto::kLacksPressure, "pressure (/proc/pressure)"},
};

// "rank 0 may use CPUs 0-3; pressure: CPUs 12.0 %, storage 0.0 %, memory 0.0 % of the time"
std::string NoteOf(const Trace& trace) {
  const HostCounts& counts = CountsOf(trace);
  int64_t seen = 0, cpu = 0, io = 0, memory = 0, throttled = 0, periods = 0;
  for (const HostCount& count : counts.host()) {
    seen += count.end - count.start;
    cpu += count.cpu_pressure_ns;
    io += count.io_pressure_ns;
    memory += count.memory_pressure_ns;
    throttled += count.throttled_ns;
    periods += count.throttled_periods;
  }
  std::string note = fmt::format("{} may use CPUs {}", RankName(trace), counts.host().back().cpus);
  if (throttled > 0) {
    note +=
        fmt::format("; its control group reached its limit of CPU time in {} periods, {} in all",
                    FormatCount(periods), FormatNs(throttled));
  }
  if (!counts.Lacks(proto::kLacksPressure)) {
    note += fmt::format("; pressure of the machine: on CPUs {}, storage {}, memory {} of the time",
                        FormatShare(cpu, seen), FormatShare(io, seen), FormatShare(memory, seen));
  }
  std::string lacks;
  for (const Lacking& lacking : kLacking) {
    if (!counts.Lacks(lacking.bit)) continue;
    lacks += fmt::format("{}{}", lacks.empty() ? "" : ", ", lacking.what);
  }
  return lacks.empty() ? note : note + "; the system does not show " + lacks;
}

}  // namespace

Table TabulateHostThreads(const Run& run, const ReportOptions&) {
  const std::vector<RankWaterfall>& waterfalls = ComputeWaterfalls(run);
  std::vector<ThreadsTime> rows;
  std::vector<std::string> notes;
  for (size_t t = 0; t < run.traces.size(); ++t) {
    if (CountsOf(run.traces[t]).host().empty()) continue;
    AddRank(run.traces[t], waterfalls[t], &rows);
    notes.push_back(NoteOf(run.traces[t]));
  }
  Table table =
      TableOf("Who had a CPU, by kind of thread, in counted steps", kHostThreadsColumns, rows);
  table.notes = std::move(notes);
  if (table.notes.empty()) {
    table.notes.push_back("no thread was sampled; record with ranktap run --sample 10ms");
  }
  return table;
}

}  // namespace ranktap::collector

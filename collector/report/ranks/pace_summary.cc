// The k-th instance of a step, a range or a kernel, over ranks.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "collector/facts/pace.h"
#include "collector/facts/shared_clock.h"
#include "collector/facts/steps.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/reports.h"
#include "collector/trace/file_notes.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

struct Instance {
  int64_t start, end;
};
// By number: a step's own, else how many of the name came before on this rank.
using Instances = std::map<int64_t, Instance>;

struct Subject {
  std::string title;
  std::vector<Instances> by_trace;
  std::string note;
};

struct Row {
  int64_t number = 0;
  size_t ranks = 0;
  const Trace* first = nullptr;
  const Trace* last = nullptr;
  const Trace* longest = nullptr;
  int64_t first_start = 0, spread = 0;
  int64_t shortest_ns = 0, mean_ns = 0, longest_ns = 0;
};

const ColumnsOf<Row> kPaceColumns = {
    {"instance", Unit::kCount,
     "The number of the step; with --operator, how often the name came before, from 0.",
     [](const Row& row) { return row.number; }},
    {"ranks", Unit::kCount, "The number of ranks that have it.",
     [](const Row& row) { return static_cast<int64_t>(row.ranks); }},
    {"start_ns", Unit::kNs, "When the first rank began it, counted from the first of all.",
     [](const Row& row) { return row.first_start; }},
    {"spread_ns", Unit::kNs, "The time from the first rank's beginning to the last rank's.",
     [](const Row& row) { return row.spread; }},
    {"first_rank", Unit::kCount, "The rank that began it first.",
     [](const Row& row) { return RankCell(*row.first); }},
    {"last_rank", Unit::kCount, "The rank that began it last.",
     [](const Row& row) { return RankCell(*row.last); }},
    {"mean_ns", Unit::kNs, "The mean duration over the ranks.",
     [](const Row& row) { return row.mean_ns; }},
    {"min_ns", Unit::kNs, "The duration on the fastest rank.",
     [](const Row& row) { return row.shortest_ns; }, Shown::kDetail},
    {"max_ns", Unit::kNs, "The duration on the slowest rank.",
     [](const Row& row) { return row.longest_ns; }},
    {"longest_rank", Unit::kCount, "The slowest rank.",
     [](const Row& row) { return RankCell(*row.longest); }},
};

Subject StepsOf(const Run& run) {
  Subject subject{.title = "When the ranks begin each step", .by_trace = {}, .note = {}};
  size_t warm_up = 0;
  for (const Trace& trace : run.traces) {
    Instances& instances = subject.by_trace.emplace_back();
    if (!HasStarts(trace)) {
      subject.note = "the files do not say when anything ran";
      continue;
    }
    for (const Step& step : DetectSteps(trace).list) {
      if (!step.warm_up) instances.try_emplace(step.number, Instance{step.start, step.end});
      warm_up += step.warm_up ? 1 : 0;
    }
  }
  if (warm_up > 0) subject.note = fmt::format("left out: {} of warm-up", warm_up);
  return subject;
}

bool IsCalled(std::string_view name, std::string_view wanted, bool exactly) {
  return exactly ? name == wanted : name.find(wanted) != name.npos;
}

// Calls `take(name, start, end)` for each timed range and kernel of the trace, in the order of
// neither.
template <typename Take>
void ForEachNamed(const Trace& trace, Take take) {
  for (size_t i = 0; i < trace.ranges.size(); ++i) {
    take(std::string(trace.dictionary.String(trace.ranges.name[i])), trace.ranges.start[i],
         trace.ranges.end[i]);
  }
  for (size_t i = 0; i < trace.kernels.size(); ++i) {
    if (trace.kernels.start[i] == kUntimed) continue;
    take(ReadableKernelName(trace.dictionary.String(trace.kernels.name[i])), trace.kernels.start[i],
         trace.kernels.end[i]);
  }
}

// The name that is `wanted`, else of those that contain it the one with the most time.
std::string NameMeant(const Run& run, const std::string& wanted, size_t* candidates) {
  std::map<std::string, int64_t> times;
  for (const Trace& trace : run.traces) {
    ForEachNamed(trace, [&](const std::string& name, int64_t start, int64_t end) {
      if (IsCalled(name, wanted, false)) times[name] += end - start;
    });
  }
  *candidates = times.contains(wanted) ? 1 : times.size();
  if (times.empty() || times.contains(wanted)) return wanted;
  return std::ranges::max_element(times, {}, [](const auto& entry) { return entry.second; })->first;
}

Subject Named(const Run& run, const std::string& wanted) {
  size_t candidates = 0;
  const std::string name = NameMeant(run, wanted, &candidates);
  Subject subject{.title = fmt::format("When the ranks begin each '{}'", name)};
  if (candidates > 1) {
    subject.note = fmt::format("{} names contain '{}'; this is the one with the most time",
                               candidates, wanted);
  }
  for (const Trace& trace : run.traces) {
    std::vector<Instance> found;
    ForEachNamed(trace, [&](const std::string& other, int64_t start, int64_t end) {
      if (IsCalled(other, name, true)) found.push_back({start, end});
    });
    std::ranges::stable_sort(found, {}, &Instance::start);
    Instances& instances = subject.by_trace.emplace_back();
    for (size_t i = 0; i < found.size(); ++i) instances[static_cast<int64_t>(i)] = found[i];
  }
  return subject;
}

void Shift(Instances* instances, int64_t by) {
  for (auto& [number, instance] : *instances) {
    instance.start -= by;
    instance.end -= by;
  }
}

// Onto the clock of the first rank; how, in a sentence.
std::string Align(const Run& run, Subject* subject) {
  const SharedClock& clock = SharedClockOf(run);
  if (clock.is_of_one_host()) return {};
  if (clock.is_known()) {
    for (uint32_t t = 0; t < subject->by_trace.size(); ++t) {
      for (auto& [number, instance] : subject->by_trace[t]) {
        instance = {clock.At(t, instance.start), clock.At(t, instance.end)};
      }
    }
    return fmt::format("the ranks' clocks are compared by their collectives, to {} ('align')",
                       FormatNs(clock.residual_ns()));
  }
  for (Instances& instances : subject->by_trace) {
    if (!instances.empty()) Shift(&instances, instances.begin()->second.start);
  }
  return "the ranks' clocks cannot be compared: times are from each rank's own first instance";
}

std::vector<Row> RowsOf(const Run& run, const Subject& subject) {
  std::map<int64_t, std::vector<size_t>> reached;
  int64_t begin = INT64_MAX;
  for (size_t t = 0; t < subject.by_trace.size(); ++t) {
    for (const auto& [number, instance] : subject.by_trace[t]) {
      reached[number].push_back(t);
      begin = std::min(begin, instance.start);
    }
  }
  std::vector<Row> rows;
  for (const auto& [number, traces] : reached) {
    Row row{.number = number, .ranks = traces.size()};
    int64_t last = 0, sum = 0;
    for (const size_t t : traces) {
      const Instance& instance = subject.by_trace[t].at(number);
      const int64_t length = instance.end - instance.start;
      const Trace* const trace = &run.traces[t];
      if (row.first == nullptr || instance.start - begin < row.first_start) {
        row.first = trace;
        row.first_start = instance.start - begin;
      }
      if (row.last == nullptr || instance.start > last) {
        row.last = trace;
        last = instance.start;
      }
      if (row.longest == nullptr || length > row.longest_ns) {
        row.longest = trace;
        row.longest_ns = length;
      }
      row.shortest_ns = row.shortest_ns == 0 ? length : std::min(row.shortest_ns, length);
      sum += length;
    }
    row.spread = last - begin - row.first_start;
    row.mean_ns = sum / static_cast<int64_t>(traces.size());
    rows.push_back(row);
  }
  return rows;
}

// A sentence on the rank that falls behind most.
std::string WhoFallsBehind(const Run& run, const Subject& subject) {
  std::vector<Starts> starts(subject.by_trace.size());
  for (size_t t = 0; t < starts.size(); ++t) {
    for (const auto& [number, instance] : subject.by_trace[t]) starts[t][number] = instance.start;
  }
  const Pace pace = PaceOf(starts);
  if (!pace.is_known) return {};
  if (!pace.behind) return "no rank falls behind the others";
  return fmt::format("{} falls behind the first by {} more with each instance",
                     RankName(run.traces[pace.behind->trace]),
                     FormatNs(static_cast<int64_t>(pace.behind->ns)));
}

}  // namespace

Table TabulatePace(const Run& run, const ReportOptions& options) {
  Subject subject =
      options.operator_name.empty() ? StepsOf(run) : Named(run, options.operator_name);
  const std::string clocks = Align(run, &subject);
  const std::vector<Row> rows = RowsOf(run, subject);
  Table table = TableOf(subject.title, kPaceColumns, rows);
  if (rows.empty()) {
    table.notes.push_back(
        !subject.note.empty() ? subject.note
        : options.operator_name.empty()
            ? "no step was found; --operator NAME: by a range or kernel of this name"
            : fmt::format("no range and no kernel is called '{}'", options.operator_name));
    return table;
  }
  const std::string behind = WhoFallsBehind(run, subject);
  for (const std::string& note : {behind, clocks, subject.note}) {
    if (!note.empty()) table.notes.push_back(note);
  }
  return table;
}

}  // namespace ranktap::collector

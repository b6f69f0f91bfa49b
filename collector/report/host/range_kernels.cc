#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/facts/numbers/duration_distribution.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/range_instances.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

// A thread's launches by time: the start of the call, and the kernel that it began.
using ThreadLaunches = std::vector<std::pair<int64_t, uint32_t>>;

std::vector<ThreadLaunches> LaunchesByThread(const Trace& trace) {
  std::vector<ThreadLaunches> threads(trace.writers.size());
  const Kernels& kernels = trace.kernels;
  for (uint32_t i = 0; i < kernels.size(); ++i) {
    const uint32_t launch = kernels.launch[i];
    if (launch == kNone || trace.api_calls.writer[launch] >= threads.size()) continue;
    threads[trace.api_calls.writer[launch]].emplace_back(trace.api_calls.start[launch], i);
  }
  for (ThreadLaunches& thread : threads) std::sort(thread.begin(), thread.end());
  return threads;
}

// Some launches of a thread, one after the other. A launch is in one span of a name at most, though
// ranges of that name nest.
struct Span {
  uint32_t trace = 0, thread = 0;
  size_t first = 0, end = 0;
  auto operator<=>(const Span&) const = default;
};

struct Name {
  std::map<uint32_t, int64_t> calls;  // by trace
  std::vector<Span> spans;
};
using NameKey = std::pair<std::string, std::string>;  // range, domain

// A kernel's calls within the ranges of a name.
struct Calls {
  DurationStatistics time;
  int64_t untimed = 0, median_ns = 0, p95_ns = 0, stddev_ns = 0;
  std::vector<uint32_t> traces;
};
using CallsByKernel = std::map<std::string, Calls>;

class Counter {
 public:
  explicit Counter(const Run& run) : run_(run) {
    for (uint32_t i = 0; i < run.traces.size(); ++i) {
      launches_.push_back(LaunchesByThread(run.traces[i]));
      AddNames(i);
    }
    readable_.resize(run.traces.size());
  }

  const std::map<NameKey, Name>& names() const { return names_; }

  // Nested ranges often hold the same launches: those are counted once. The values that quantiles
  // need are kept for one name at a time, 8 bytes for each kernel.
  const CallsByKernel& KernelsOf(const Name& name) {
    const auto [at, is_new] = counted_.try_emplace(name.spans);
    if (is_new) at->second = Count(name.spans);
    return at->second;
  }

 private:
  void AddNames(uint32_t index) {
    const Trace& trace = run_.traces[index];
    std::map<std::pair<uint32_t, uint32_t>, std::map<uint16_t, std::vector<Interval>>> open;
    std::map<std::pair<uint32_t, uint32_t>, int64_t> calls;
    for (const RangeInstance& range : RangeInstances(trace)) {
      open[{range.name, range.domain}][range.writer].emplace_back(range.start, range.end);
      ++calls[{range.name, range.domain}];
    }
    for (const auto& [id, by_thread] : open) {
      Name& name = names_[{std::string(trace.dictionary.String(id.first)),
                           std::string(DomainName(trace, id.second))}];
      name.calls[index] += calls[id];
      for (const auto& [thread, intervals] : by_thread) {
        if (thread < launches_[index].size()) AddSpans(index, thread, intervals, &name.spans);
      }
    }
  }

  void AddSpans(uint32_t trace, uint32_t thread, const std::vector<Interval>& intervals,
                std::vector<Span>* spans) const {
    const ThreadLaunches& launches = launches_[trace][thread];
    const auto index = [&](int64_t time) {
      return static_cast<size_t>(
          std::lower_bound(launches.begin(), launches.end(), std::pair(time, 0u)) -
          launches.begin());
    };
    for (const auto& [start, end] : Merged(intervals)) {
      const Span span{trace, thread, index(start), index(end)};
      if (span.first < span.end) spans->push_back(span);
    }
  }

  CallsByKernel Count(const std::vector<Span>& spans) {
    std::unordered_map<const std::string*, DurationDistribution> times;
    CallsByKernel counted;
    for (const Span& span : spans) {
      const Kernels& kernels = run_.traces[span.trace].kernels;
      for (size_t i = span.first; i < span.end; ++i) {
        const uint32_t row = launches_[span.trace][span.thread][i].second;
        const std::string& text = Readable(span.trace, kernels.name[row]);
        const auto at = counted.try_emplace(text).first;
        Calls& calls = at->second;
        if (calls.traces.empty() || calls.traces.back() != span.trace) {
          calls.traces.push_back(span.trace);
        }
        if (kernels.start[row] == kUntimed) {
          ++calls.untimed;
        } else {
          times[&at->first].Add(kernels.end[row] - kernels.start[row]);
        }
      }
    }
    for (auto& [text, calls] : counted) {
      const DurationDistribution& time = times[&text];
      calls.time = time;
      calls.median_ns = time.median_ns();
      calls.p95_ns = time.p95_ns();
      calls.stddev_ns = time.stddev_ns();
      std::sort(calls.traces.begin(), calls.traces.end());
      calls.traces.erase(std::unique(calls.traces.begin(), calls.traces.end()), calls.traces.end());
    }
    return counted;
  }

  const std::string& Readable(uint32_t trace, uint32_t name) {
    std::string& text = readable_[trace][name];
    if (text.empty()) text = ReadableKernelName(run_.traces[trace].dictionary.String(name));
    return text;
  }

  const Run& run_;
  std::vector<std::vector<ThreadLaunches>> launches_;  // by trace and thread
  std::map<NameKey, Name> names_;
  std::vector<std::unordered_map<uint32_t, std::string>> readable_;  // by trace
  std::map<std::vector<Span>, CallsByKernel> counted_;
};

struct RangeKernelsRow {
  const NameKey* range;
  const std::string* kernel;
  const Calls* calls;
  int64_t range_calls = 0;
};

const ColumnsOf<RangeKernelsRow> kRangeKernelsColumns = {
    {"range", Unit::kText, "The name of the NVTX range.",
     [](const RangeKernelsRow& row) { return row.range->first; }},
    {"domain", Unit::kText, "The range's NVTX domain.",
     [](const RangeKernelsRow& row) { return row.range->second; }, Shown::kDetail},
    {"kernel", Unit::kText, "The kernel.", [](const RangeKernelsRow& row) { return *row.kernel; }},
    {"calls", Unit::kCount, "The kernel's launches within the range.",
     [](const RangeKernelsRow& row) { return row.calls->time.count + row.calls->untimed; }},
    {"total_ns", Unit::kNs, "The durations of these kernels, added up.",
     [](const RangeKernelsRow& row) { return row.calls->time.total_ns; }},
    {"mean_ns", Unit::kNs, "The mean duration of one kernel.",
     [](const RangeKernelsRow& row) { return row.calls->time.mean_ns(); }},
    {"median_ns", Unit::kNs, "The median duration of one kernel.",
     [](const RangeKernelsRow& row) { return row.calls->median_ns; }, Shown::kDetail},
    {"p95_ns", Unit::kNs, "The 95th percentile of the durations.",
     [](const RangeKernelsRow& row) { return row.calls->p95_ns; }, Shown::kDetail},
    {"stddev_ns", Unit::kNs, "The sample standard deviation of the durations.",
     [](const RangeKernelsRow& row) { return row.calls->stddev_ns; }, Shown::kDetail},
    {"min_ns", Unit::kNs, "The shortest duration.",
     [](const RangeKernelsRow& row) { return row.calls->time.shortest_ns(); }, Shown::kDetail},
    {"max_ns", Unit::kNs, "The longest duration.",
     [](const RangeKernelsRow& row) { return row.calls->time.max_ns; }, Shown::kDetail},
    {"range_calls", Unit::kCount, "How often a thread entered the range and launched this kernel.",
     [](const RangeKernelsRow& row) { return row.range_calls; }, Shown::kDetail},
    {"ranks", Unit::kCount, "The number of ranks that launched it there.",
     [](const RangeKernelsRow& row) { return static_cast<int64_t>(row.calls->traces.size()); },
     Shown::kDetail},
};

// ThreadLaunches of graphs whose kernels were not recorded one by one, while any range was open.
int64_t WholeGraphsWithin(const Trace& trace) {
  std::map<uint16_t, std::vector<Interval>> open;
  for (const RangeInstance& range : RangeInstances(trace)) {
    open[range.writer].emplace_back(range.start, range.end);
  }
  for (auto& [writer, intervals] : open) intervals = Merged(std::move(intervals));
  int64_t graphs = 0;
  for (const uint32_t launch : trace.graph_launches.launch) {
    if (launch == kNone) continue;
    const auto of_thread = open.find(trace.api_calls.writer[launch]);
    if (of_thread == open.end()) continue;
    const int64_t start = trace.api_calls.start[launch];
    const auto after = std::upper_bound(of_thread->second.begin(), of_thread->second.end(),
                                        Interval(start, INT64_MAX));
    graphs += after != of_thread->second.begin() && std::prev(after)->second > start ? 1 : 0;
  }
  return graphs;
}

}  // namespace

Table TabulateRangeKernels(const Run& run, const ReportOptions&) {
  Counter counter(run);
  std::vector<RangeKernelsRow> rows;
  int64_t untimed = 0, graphs = 0;
  for (const auto& [key, name] : counter.names()) {
    for (const auto& [kernel, calls] : counter.KernelsOf(name)) {
      RangeKernelsRow& row = rows.emplace_back(RangeKernelsRow{&key, &kernel, &calls});
      for (const uint32_t trace : calls.traces) row.range_calls += name.calls.at(trace);
      untimed += calls.untimed;
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const RangeKernelsRow& a, const RangeKernelsRow& b) {
                     return a.calls->time.total_ns > b.calls->time.total_ns;
                   });
  Table table =
      TableOf("Kernels by the range that their launch was in", kRangeKernelsColumns, rows);
  for (const Trace& trace : run.traces) graphs += WholeGraphsWithin(trace);
  if (table.rows.empty()) table.notes.push_back("no kernel was launched within a range");
  if (untimed > 0) table.notes.push_back("kernels without times count as calls only");
  if (graphs > 0) {
    table.notes.push_back(
        fmt::format("{} graphs launched within a range were traced as a whole: their kernels are "
                    "not in this table; 'ranges --by projection' has their time",
                    graphs));
  }
  return table;
}

}  // namespace ranktap::collector

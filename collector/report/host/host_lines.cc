#include "collector/report/host/host_lines.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "collector/facts/framework/module_spans.h"
#include "collector/facts/samples/host_phases.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/samples/thread_purposes.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/steps/verdict_words.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

struct LineTime {
  std::string thread, phase, module, file, line, function;
  std::string source() const {
    return line.empty() ? ShortFile(file) : fmt::format("{}:{}", ShortFile(file), line);
  }
  int64_t self_ns = 0, total_ns = 0, cpu_ns = 0, wait_ns = 0, gil_ns = 0, queued_ns = 0;
  std::set<size_t> ranks;
  int64_t all_ns = 0;  // of all rows of its kind of thread
};

using HostLinesKey =
    std::tuple<std::string, std::string, std::string, std::string, std::string, std::string>;

// What one trace's host was in at a time.
class Surroundings {
 public:
  explicit Surroundings(const Trace& trace)
      : trace_(trace), phases_(trace), modules_(ModuleSpans(trace)) {}

  // visit(phase, module, ns) for each piece of [start, end).
  template <typename Visit>
  void Split(int64_t start, int64_t end, Visit&& visit) const {
    phases_.Split(start, end,
                  [&](std::optional<Cause> cause, std::string_view gap, int64_t from, int64_t to) {
                    visit(cause ? DescribePhase(*cause) : gap, ModuleAt(from), to - from);
                  });
  }

 private:
  // The innermost at work then.
  std::string_view ModuleAt(int64_t time) const {
    constexpr int kLookedAt = 256;  // siblings that have ended lie between
    auto at = std::ranges::upper_bound(modules_, time, {}, &ModuleSpan::start);
    for (int i = 0; i < kLookedAt && at != modules_.begin(); ++i) {
      --at;
      if (at->end > time) return trace_.dictionary.String(at->name);
    }
    return "";
  }

  const Trace& trace_;
  HostPhases phases_;
  const std::vector<ModuleSpan>& modules_;
};

class Lines {
 public:
  void Add(const Trace& trace, size_t number) {
    const HostSamples& samples = SamplesOf(trace);
    const ThreadPurposes& purposes = PurposesOf(trace);
    const Surroundings around(trace);
    for (const HostSample& sample : samples.all()) {
      const int64_t start = sample.start, end = sample.end;
      if (end <= start) continue;
      if (sample.thread != samples.main_thread()) {
        AddPiece(samples, sample, purposes.KindOfThread(sample.thread),
                 NameOf(purposes.WorkOf(sample)), "", end - start, number);
        continue;
      }
      around.Split(start, end, [&](std::string_view phase, std::string_view module, int64_t ns) {
        AddPiece(samples, sample, "main", phase, module, ns, number);
      });
    }
  }

  std::vector<LineTime> Take() {
    std::map<std::string, int64_t> all;
    for (const auto& [key, row] : rows_) all[row.thread] += row.self_ns;
    std::vector<LineTime> rows;
    for (auto& [key, row] : rows_) {
      row.all_ns = all[row.thread];
      rows.push_back(std::move(row));
    }
    SortRows(&rows, [](const LineTime& a, const LineTime& b) {
      const bool a_main = a.thread == "main", b_main = b.thread == "main";
      return std::tuple(!a_main, -a.self_ns, -a.total_ns) <
             std::tuple(!b_main, -b.self_ns, -b.total_ns);
    });
    return rows;
  }

 private:
  void AddPiece(const HostSamples& samples, const HostSample& sample, std::string_view thread,
                std::string_view phase, std::string_view module, int64_t ns, size_t number) {
    const int64_t length = sample.end - sample.start;
    // Of a sample in two phases, each gets its part of the CPU's time.
    const auto part = [ns, length](int64_t of) {
      return static_cast<int64_t>(static_cast<double>(of) * static_cast<double>(ns) /
                                  static_cast<double>(length));
    };
    const int64_t cpu = std::min(part(sample.cpu_ns), ns);
    const int64_t queued = std::min(part(sample.queued_ns), ns - cpu);
    std::set<HostLinesKey> seen;  // a recursive function counts once
    uint32_t at = sample.frame;
    bool is_innermost = true;
    do {
      const SampledFrame* const frame = samples.Frame(at);
      HostLinesKey key{
          std::string(thread), std::string(phase), std::string(module), "(not read)", "", ""};
      if (frame != nullptr) {
        std::get<3>(key) = frame->file;
        if (frame->line != 0) std::get<4>(key) = std::to_string(frame->line);
        std::get<5>(key) = frame->function;
      }
      LineTime& row = rows_[key];
      if (row.thread.empty()) {
        std::tie(row.thread, row.phase, row.module, row.file, row.line, row.function) = key;
      }
      row.ranks.insert(number);
      if (seen.insert(key).second) row.total_ns += ns;
      if (is_innermost) {
        row.self_ns += ns;
        row.cpu_ns += cpu;
        row.queued_ns += queued;
        (sample.state == proto::SampleState::kWantsGil ? row.gil_ns : row.wait_ns) +=
            ns - cpu - queued;
      }
      is_innermost = false;
      at = frame == nullptr ? 0 : frame->parent;
    } while (at != 0);
  }

  std::map<HostLinesKey, LineTime> rows_;
};

const ColumnsOf<LineTime> kHostLinesColumns = {
    {"thread", Unit::kText,
     "The main thread, or any other one; of processes that it started: what they are for.",
     [](const LineTime& row) { return row.thread; }},
    {"phase", Unit::kText,
     "The part of the step that the main thread was in; of a loader's worker: what it did.",
     [](const LineTime& row) { return row.phase; }},
    {"module", Unit::kText, "The module that the main thread was in, where modules are recorded.",
     [](const LineTime& row) { return row.module; }, Shown::kDetail},
    {"source", Unit::kText, "The file and line.", [](const LineTime& row) { return row.source(); }},
    {"function", Unit::kText, "The function.", [](const LineTime& row) { return row.function; }},
    {"self_ns", Unit::kNs, "The time in which this line itself was at work.",
     [](const LineTime& row) { return row.self_ns; }},
    {"share_percent", Unit::kPercent, "The part of the sampled time of such threads.",
     [](const LineTime& row) { return Percent(row.self_ns, row.all_ns); }},
    {"total_ns", Unit::kNs, "The time in which this line or what it called was at work.",
     [](const LineTime& row) { return row.total_ns; }},
    {"on_cpu_ns", Unit::kNs, "The part of the line's own time in which a CPU ran it.",
     [](const LineTime& row) { return row.cpu_ns; }},
    {"no_cpu_ns", Unit::kNs, "The part in which it was ready to run and no CPU ran it.",
     [](const LineTime& row) { return row.queued_ns; }},
    {"waiting_ns", Unit::kNs, "The part in which it waited, and not for the interpreter's lock.",
     [](const LineTime& row) { return row.wait_ns; }},
    {"gil_ns", Unit::kNs, "The part in which it waited for the interpreter's lock.",
     [](const LineTime& row) { return row.gil_ns; }, Shown::kDetail},
    {"file", Unit::kText, "The file with its whole path.",
     [](const LineTime& row) { return row.file; }, Shown::kDetail},
    {"ranks", Unit::kCount, "The number of ranks that were found here.",
     [](const LineTime& row) { return static_cast<int64_t>(row.ranks.size()); }, Shown::kDetail},
};

void AddLookNotes(const Run& run, Table* table) {
  uint64_t looks = 0, unread = 0;
  for (const Trace& trace : run.traces) {
    for (const HostSample& sample : SamplesOf(trace).all()) {
      looks += sample.looks;
      if (sample.frame == 0) unread += sample.looks;
    }
  }
  if (looks == 0) {
    table->notes.push_back("no thread was sampled; record with ranktap run --sample 10ms");
    return;
  }
  table->notes.push_back(fmt::format("{} looks at threads, {} of which met a stack that changed",
                                     FormatCount(static_cast<int64_t>(looks)),
                                     FormatCount(static_cast<int64_t>(unread))));
}

}  // namespace

Table TabulateHostLines(const Run& run, const ReportOptions&) {
  Lines lines;
  for (size_t i = 0; i < run.traces.size(); ++i) {
    if (!SamplesOf(run.traces[i]).all().empty()) lines.Add(run.traces[i], i);
  }
  Table table = TableOf("Where the host's time goes, by line of Python, all ranks",
                        kHostLinesColumns, lines.Take());
  AddLookNotes(run, &table);
  return table;
}

}  // namespace ranktap::collector

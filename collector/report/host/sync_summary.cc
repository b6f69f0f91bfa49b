
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "collector/facts/device_timeline.h"
#include "collector/facts/framework/operator_around.h"
#include "collector/facts/framework/program_lines.h"
#include "collector/facts/numbers/duration_statistics.h"
#include "collector/facts/steps.h"
#include "collector/facts/sync_calls.h"
#include "collector/report/columns.h"
#include "collector/report/host/call_sites.h"
#include "collector/report/reports.h"
#include "collector/trace/sort_rows.h"

namespace ranktap::collector {
namespace {

// One function that waits, by its calls from one line of the program.
struct SyncRow {
  std::string call, line;
  DurationStatistics time;
  int64_t in_steps = 0, idle_ns = 0;
  std::set<const Trace*> ranks;
  int64_t steps = 0;                         // of all ranks
  std::map<std::string, int64_t> operators;  // the time waited inside of each
};

// A call whose row is charged with the idle time after it.
struct Wait {
  int64_t start = 0, end = 0;
  SyncRow* row = nullptr;
};

// The device's idle time that began between the start and the end of each: the last such gap.
void AddIdleAfter(const DeviceSpans& spans, std::vector<Wait> waits) {
  std::ranges::sort(waits, {}, &Wait::end);
  int64_t worked = INT64_MIN;  // until when, of the work that began by the end of the wait
  auto next = spans.begin();
  for (const Wait& wait : waits) {
    for (; next != spans.end(); ++next) {
      const DeviceSpan span = *next;
      if (span.end <= span.start) continue;
      if (span.start > wait.end) break;
      worked = std::max(worked, span.end);
    }
    if (next == spans.end()) return;
    if (wait.start <= worked && worked <= wait.end) wait.row->idle_ns += next->start - worked;
  }
}

using ByCall = std::map<std::pair<std::string, std::string>, SyncRow>;  // and line

// Finds the program's line that waits, by its Python stack, else by the native one.
class WaitLines {
 public:
  explicit WaitLines(const Trace& trace) : trace_(trace), python_(trace) {}

  std::string Of(const ApiCalls& calls, size_t row, uint32_t op) {
    const std::string_view line = python_.At(calls.writer[row], calls.start[row], op);
    if (!line.empty()) return std::string(line);
    const uint32_t stack = calls.stack.At(row);
    const auto [native, is_new] = of_stack_.try_emplace(stack);
    if (is_new) native->second = NativeLineOf(trace_, stack);
    return native->second;
  }

 private:
  const Trace& trace_;
  const ProgramLines python_;
  std::unordered_map<uint32_t, std::string> of_stack_;
};

void AddTrace(const Trace& trace, ByCall* by_call) {
  StepFinder finder(trace, DetectSteps(trace));
  const OperatorAround around(trace);
  WaitLines lines(trace);
  std::vector<Wait> waits;
  int64_t told = INT64_MIN;  // the runtime's call and the driver's inside it share one gap
  ForEachSyncCall(trace, [&](const ApiCalls& calls, size_t i) {
    const uint32_t op_row = around.RowAt(calls.writer[i], calls.start[i]);
    const std::string& call = trace.dictionary.Api(calls.api[i]).name;
    SyncRow& row = (*by_call)[{call, lines.Of(calls, i, op_row)}];
    row.time.Add(calls.end[i] - calls.start[i]);
    row.in_steps += finder.IndexAt(calls.start[i]) >= 0;
    row.ranks.insert(&trace);
    if (op_row != kNone) {
      const std::string_view op = trace.dictionary.String(trace.operators.name[op_row]);
      row.operators[std::string(op)] += calls.end[i] - calls.start[i];
    }
    if (calls.start[i] < told) return;
    waits.push_back({calls.start[i], calls.end[i], &row});
    told = calls.end[i];
  });
  AddIdleAfter(DeviceTimeline(trace), std::move(waits));
}

Cell PerStep(const SyncRow& row) {
  if (row.steps == 0) return {};
  return static_cast<double>(row.in_steps) / static_cast<double>(row.steps);
}

// The place at which most of the time was waited.
Cell OperatorCell(const SyncRow& row) {
  if (row.operators.empty()) return {};
  return std::ranges::max_element(row.operators, {}, [](const auto& entry) { return entry.second; })
      ->first;
}

const ColumnsOf<SyncRow> kSyncColumns = {
    {"call", Unit::kText, "The call that waits for the device.",
     [](const SyncRow& row) { return row.call; }},
    {"line", Unit::kText,
     "The line of the program that waits, by Python's stack, else by the native one; empty: no "
     "stack was recorded.",
     [](const SyncRow& row) { return row.line; }},
    {"calls", Unit::kCount, "The number of calls.",
     [](const SyncRow& row) { return row.time.count; }},
    {"per_step", Unit::kCount, "The number of calls a step.",
     [](const SyncRow& row) { return PerStep(row); }},
    {"total_ns", Unit::kNs, "The time that the host waited, added up.",
     [](const SyncRow& row) { return row.time.total_ns; }},
    {"mean_ns", Unit::kNs, "The mean wait of one call.",
     [](const SyncRow& row) { return row.time.mean_ns(); }},
    {"min_ns", Unit::kNs, "The shortest wait.",
     [](const SyncRow& row) { return row.time.shortest_ns(); }, Shown::kDetail},
    {"max_ns", Unit::kNs, "The longest wait.", [](const SyncRow& row) { return row.time.max_ns; },
     Shown::kDetail},
    {"idle_after_ns", Unit::kNs, "The time that the device then ran nothing.",
     [](const SyncRow& row) { return row.idle_ns; }},
    {"operator", Unit::kText, "The operator that makes most of these calls.",
     [](const SyncRow& row) { return OperatorCell(row); }},
    {"ranks", Unit::kCount, "The number of ranks that wait so.",
     [](const SyncRow& row) { return static_cast<int64_t>(row.ranks.size()); }, Shown::kDetail},
};

}  // namespace

Table TabulateSyncs(const Run& run, const ReportOptions&) {
  ByCall by_call;
  int64_t steps = 0;
  for (const Trace& trace : run.traces) {
    AddTrace(trace, &by_call);
    steps += static_cast<int64_t>(DetectSteps(trace).list.size());
  }
  std::vector<SyncRow> rows;
  for (auto& [key, row] : by_call) {
    std::tie(row.call, row.line) = key;
    row.steps = steps;
    rows.push_back(std::move(row));
  }
  SortRows(&rows,
           [](const SyncRow& a, const SyncRow& b) { return a.time.total_ns > b.time.total_ns; });
  Table table = TableOf("The host waiting for the device, all ranks", kSyncColumns, rows);
  if (table.rows.empty()) table.notes.push_back("no call waited for a device");
  return table;
}

}  // namespace ranktap::collector

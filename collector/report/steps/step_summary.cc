#include <fmt/core.h>

#include <algorithm>

#include "collector/facts/device_steps.h"
#include "collector/facts/framework/pass_nesting.h"
#include "collector/facts/host_activity.h"
#include "collector/facts/numbers/describe.h"
#include "collector/facts/numbers/interval_set.h"
#include "collector/facts/steps.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/human_units.h"
#include "collector/report/reports.h"
#include "collector/report/steps/model_calls.h"
#include "collector/report/steps/unlike_steps.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// One step of one rank. All in ns but `kernels`; phases are of the framework.
struct StepRow {
  const Trace* trace = nullptr;
  Step step;
  int64_t device = 0;       // of the step's time
  bool has_phases = false;  // the framework told of some, in this step or another
  int64_t gpu = 0, kernels = 0;
  int64_t forward = 0, backward = 0, optimizer = 0, data = 0, collection = 0, checkpoint = 0;
  int64_t other = 0;  // of the host's step, in none of these
};

int64_t* PhaseOf(std::string_view name, StepRow* row) {
  if (name == proto::kOptimizerPhase) return &row->optimizer;
  if (name == proto::kBackwardPhase) return &row->backward;
  if (name == proto::kDataPhase) return &row->data;
  if (name == proto::kCollectionPhase) return &row->collection;
  if (name == proto::kCheckpointPhase) return &row->checkpoint;
  return nullptr;
}

void AddOther(const StepList& steps, std::vector<Interval> phases, std::vector<StepRow>* rows) {
  phases = Merged(std::move(phases));
  for (size_t i = 0; i < rows->size(); ++i) {
    const Step& step = steps.list[i];
    (*rows)[i].other = step.length() - Length(Within(phases, step.start, step.end));
  }
}

// To the step it begins in; one that ends steps itself to each, as far as it is in it.
void AddForward(const PassNesting& nesting, const Ranges& ranges, uint32_t range,
                const StepList& steps, std::vector<StepRow>* rows) {
  int64_t start = ranges.start[range];
  int64_t step = StepIndexAt(steps, start);
  const bool by_hand = nesting.by_hand.contains(ranges.name[range]);
  while (step >= 0 && start < ranges.end[range]) {
    const Step& at = steps.list[static_cast<size_t>(step)];
    const int64_t end = by_hand ? std::min(at.end, ranges.end[range]) : ranges.end[range];
    (*rows)[static_cast<size_t>(step)].forward +=
        end - start - Length(nesting.InForward(ranges.writer[range], start, end));
    const bool has_next = by_hand && static_cast<size_t>(step) + 1 < steps.list.size();
    step = has_next ? step + 1 : -1;
    start = has_next ? steps.list[static_cast<size_t>(step)].start : end;
  }
}

// False: the framework told of none.
bool AddPhases(const Trace& trace, const StepList& steps, std::vector<StepRow>* rows) {
  const Ranges& ranges = trace.ranges;
  const auto row_at = [&](uint32_t range) -> StepRow* {
    const int64_t step = StepIndexAt(steps, ranges.start[range]);
    return step < 0 ? nullptr : &(*rows)[static_cast<size_t>(step)];
  };
  const std::vector<uint32_t> modules = RangesIn(trace, kModuleDomain);
  const std::vector<uint32_t> phases = PhasesOfSteps(trace);
  const PassNesting& nesting = NestedPasses(trace);
  std::vector<Interval> all;
  for (const uint32_t range : modules) {
    if (ranges.depth[range] != 0) continue;
    all.emplace_back(ranges.start[range], ranges.end[range]);
    AddForward(nesting, ranges, range, steps, rows);
  }
  for (const uint32_t range : phases) {
    // A window's beginning is a part of no pass: the rest of the step has it.
    if (trace.dictionary.String(ranges.name[range]) == proto::kStandstillPhase) continue;
    all.push_back({ranges.start[range], ranges.end[range]});
    StepRow* const row = row_at(range);
    if (row == nullptr) continue;
    if (int64_t* const phase = PhaseOf(trace.dictionary.String(ranges.name[range]), row)) {
      *phase += ranges.end[range] - ranges.start[range];
      // Forward and backward of a closure that the optimizer calls, as Lightning's do.
      if (phase == &row->optimizer) {
        *phase -= Length(Within(nesting.in_optimizers, ranges.start[range], ranges.end[range]));
      }
    }
  }
  AddOther(steps, std::move(all), rows);
  return !modules.empty() || !phases.empty();
}

// Adds times that only grow to the steps that they lie in.
class BusyTime {
 public:
  explicit BusyTime(std::vector<StepRow>* rows) : rows_(*rows) {}
  void Add(int64_t start, int64_t end) {
    start = std::max(start, reached_);
    if (start >= end) return;
    reached_ = end;
    while (first_ < rows_.size() && rows_[first_].step.end <= start) ++first_;
    for (size_t i = first_; i < rows_.size() && rows_[i].step.start < end; ++i) {
      const Step& step = rows_[i].step;
      rows_[i].device +=
          std::max<int64_t>(std::min(end, step.end) - std::max(start, step.start), 0);
    }
  }

 private:
  std::vector<StepRow>& rows_;
  int64_t reached_ = INT64_MIN;
  size_t first_ = 0;  // of the rows that have not ended
};

std::vector<StepRow> RowsOf(const Trace& trace, const StepList& steps) {
  std::vector<StepRow> rows;
  for (const Step& step : StepsOnDevice(trace).list)
    rows.push_back({.trace = &trace, .step = step});
  BusyTime busy(&rows);
  StepFinder finder(trace, steps);
  for (const DeviceSpan& span : DeviceTimeline(trace)) {
    busy.Add(span.start, span.end);
    const int64_t step = finder.IndexOf(span);
    if (step < 0) continue;
    rows[static_cast<size_t>(step)].gpu += span.end - span.start;
    rows[static_cast<size_t>(step)].kernels += span.table == DeviceSpan::Table::kKernel;
  }
  const bool has_phases = AddPhases(trace, steps, &rows);
  for (StepRow& row : rows) row.has_phases = has_phases;
  return rows;
}

std::string DescribeSteps(const Run& run, uint32_t t) {
  const Trace& trace = run.traces[t];
  const StepList& steps = DetectSteps(trace);
  std::vector<double> lengths;
  for (const Step& step : StepsOnDevice(trace).list) {
    if (!step.warm_up) lengths.push_back(static_cast<double>(step.length()));
  }
  const Description of = Describe(std::move(lengths));
  const size_t warm_up = steps.list.size() - of.count;
  const std::string evaluation =
      steps.evaluations == 0
          ? ""
          : fmt::format("; left out before them: {} of evaluation, {}",
                        Counted(static_cast<size_t>(steps.evaluations), "forward"),
                        FormatNs(steps.evaluation_ns));
  const std::string longest = DescribeLongestStep(run, t);
  return fmt::format("{}: {} by {}, median {}, longest {}{}{}{}{}", RankName(trace),
                     Counted(of.count, std::string(steps.noun())), steps.source,
                     FormatNs(static_cast<int64_t>(of.median)),
                     FormatNs(static_cast<int64_t>(of.max)), longest.empty() ? "" : "; ", longest,
                     warm_up == 0 ? "" : fmt::format("; {} of warm-up", warm_up), evaluation);
}

// "rank 0: a call takes 2.000 ms (p50), 3.000 ms (p99), and 8.000 ms pass between two": a call is a
// forward, and its step lasts until the next.
std::string DescribeCallsOf(const Trace& trace, const StepList& steps) {
  const ModelCalls of = CallsOf(trace, steps);
  if (of.calls.count == 0) return fmt::format("{}: no call", RankName(trace));
  return fmt::format("{}: {}, and {} pass between two", RankName(trace), DescribeLengths(of),
                     FormatNs(of.pause_ns));
}

Cell Phase(const StepRow& row, int64_t ns) { return row.has_phases ? Cell(ns) : Cell(); }

const ColumnsOf<StepRow> kStepColumns = {
    {"rank", Unit::kCount, kRankMeaning, [](const StepRow& row) { return RankCell(*row.trace); }},
    {"step", Unit::kCount, "The number of the step.",
     [](const StepRow& row) { return row.step.number; }},
    {"start_ns", Unit::kNs, "When the step began, counted from the rank's first event.",
     [](const StepRow& row) { return row.step.start - row.trace->first_ns; }, Shown::kDetail},
    {"total_ns", Unit::kNs, "The length of the step.",
     [](const StepRow& row) { return row.step.length(); }},
    {"device_ns", Unit::kNs, "The time of the step in which the device works.",
     [](const StepRow& row) { return row.device; }, Shown::kDetail},
    {"device_busy_percent", Unit::kPercent, "The share of the step in which the device works.",
     [](const StepRow& row) { return Percent(row.device, row.step.length()); }},
    {"gpu_ns", Unit::kNs, "The device work that the step launched, added up.",
     [](const StepRow& row) { return row.gpu; }},
    {"kernels", Unit::kCount, "The kernels that the step launched.",
     [](const StepRow& row) { return row.kernels; }},
    {"forward_ns", Unit::kNs, "The host's time in the forward pass.",
     [](const StepRow& row) { return Phase(row, row.forward); }, Shown::kDetail},
    {"backward_ns", Unit::kNs, "The host's time in the backward pass.",
     [](const StepRow& row) { return Phase(row, row.backward); }, Shown::kDetail},
    {"optimizer_ns", Unit::kNs, "The host's time in the optimizer.",
     [](const StepRow& row) { return Phase(row, row.optimizer); }, Shown::kDetail},
    {"data_ns", Unit::kNs, "The host's time waiting for the data loader.",
     [](const StepRow& row) { return Phase(row, row.data); }, Shown::kDetail},
    {"collection_ns", Unit::kNs, "The host's time in Python's garbage collections.",
     [](const StepRow& row) { return Phase(row, row.collection); }, Shown::kDetail},
    {"checkpoint_ns", Unit::kNs, "The host's time saving checkpoints.",
     [](const StepRow& row) { return Phase(row, row.checkpoint); }, Shown::kDetail},
    {"other_ns", Unit::kNs, "The rest of the host's time in the step.",
     [](const StepRow& row) { return Phase(row, row.other); }, Shown::kDetail},
    {"warm_up", Unit::kText, "yes if the means leave the step out.",
     [](const StepRow& row) { return row.step.warm_up ? "yes" : ""; }, Shown::kDetail},
};

}  // namespace

Table TabulateSteps(const Run& run, const ReportOptions&) {
  std::vector<StepRow> rows;
  std::vector<std::string> notes;
  for (uint32_t t = 0; t < run.traces.size(); ++t) {
    const Trace& trace = run.traces[t];
    const StepList& steps = DetectSteps(trace);
    if (steps.list.empty()) {
      notes.push_back(
          fmt::format("{}: no steps: no optimizer step{}, no ProfilerStep, no repeating NVTX "
                      "range, no period of kernels",
                      RankName(trace), trace.is_ours() ? " (--level full)" : ""));
      continue;
    }
    for (StepRow& row : RowsOf(trace, steps)) rows.push_back(row);
    notes.push_back(DescribeSteps(run, t));
    if (steps.is_call) notes.push_back(DescribeCallsOf(trace, steps));
  }
  const bool only_calls = std::ranges::all_of(
      run.traces, [](const Trace& trace) { return DetectSteps(trace).is_call; });
  Table table = TableOf(
      only_calls && !run.traces.empty() ? "Calls of the model, by rank" : "Training steps, by rank",
      kStepColumns, rows);
  table.notes = std::move(notes);
  return table;
}

}  // namespace ranktap::collector

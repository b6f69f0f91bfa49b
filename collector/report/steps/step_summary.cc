#include "collector/report/steps/step_summary.h"

#include <algorithm>

#include "collector/analysis/numbers/describe.h"
#include "collector/analysis/numbers/interval_set.h"
#include "collector/analysis/steps.h"
#include "collector/report/cells.h"
#include "collector/report/wording.h"
#include "collector/trace/framework_ranges.h"

namespace ranktap::collector {
namespace {

// All in ns but `kernels`; phases are of the framework.
struct StepRow {
  int64_t gpu = 0, kernels = 0;
  int64_t forward = 0, backward = 0, optimizer = 0, data = 0, collection = 0, checkpoint = 0;
};

int64_t* PhaseOf(std::string_view name, StepRow* row) {
  if (name == proto::kOptimizerPhase) return &row->optimizer;
  if (name == proto::kBackwardPhase) return &row->backward;
  if (name == proto::kDataPhase) return &row->data;
  if (name == proto::kCollectionPhase) return &row->collection;
  if (name == proto::kCheckpointPhase) return &row->checkpoint;
  return nullptr;
}

// False: the framework told of none.
bool AddPhases(const Trace& trace, const StepList& steps, std::vector<StepRow>* rows) {
  const Ranges& ranges = trace.ranges;
  const auto row_at = [&](uint32_t range) -> StepRow* {
    const int64_t step = StepIndexAt(steps, ranges.start[range]);
    return step < 0 ? nullptr : &(*rows)[static_cast<size_t>(step)];
  };
  const std::vector<uint32_t> modules = RangesIn(trace, kModuleDomain);
  const std::vector<uint32_t> phases = RangesIn(trace, kPhaseDomain);
  for (const uint32_t range : modules) {
    StepRow* const row = row_at(range);
    if (row != nullptr && ranges.depth[range] == 0) {
      row->forward += ranges.end[range] - ranges.start[range];
    }
  }
  for (const uint32_t range : phases) {
    StepRow* const row = row_at(range);
    if (row == nullptr) continue;
    if (int64_t* const phase = PhaseOf(trace.dictionary.String(ranges.name[range]), row)) {
      *phase += ranges.end[range] - ranges.start[range];
    }
  }
  return !modules.empty() || !phases.empty();
}

void AddSteps(const Trace& trace, const StepList& steps, Table* table) {
  const std::vector<DeviceSpan>& spans = DeviceTimeline(trace);
  const std::vector<Interval> busy = MergedIntervals(spans);
  std::vector<StepRow> rows(steps.list.size());
  StepFinder finder(trace, steps);
  for (const DeviceSpan& span : spans) {
    const int64_t step = finder.IndexOf(span);
    if (step < 0) continue;
    rows[static_cast<size_t>(step)].gpu += span.end - span.start;
    rows[static_cast<size_t>(step)].kernels += span.table == DeviceSpan::Table::kKernel;
  }
  const bool has_phases = AddPhases(trace, steps, &rows);
  const auto phase = [has_phases](int64_t ns) { return has_phases ? Cell(ns) : Cell(); };
  std::vector<double> lengths;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Step& step = steps.list[i];
    const StepRow& row = rows[i];
    const int64_t device = Length(Within(busy, step.start, step.end));
    if (!step.warm_up) lengths.push_back(static_cast<double>(step.length()));
    table->rows.push_back({RankCell(trace), step.number, step.start - trace.first_ns, step.length(),
                           device, Percent(device, step.length()), row.gpu, row.kernels,
                           phase(row.forward), phase(row.backward), phase(row.optimizer),
                           phase(row.data), phase(row.collection), phase(row.checkpoint),
                           std::string(step.warm_up ? "yes" : "")});
  }
  const Description of = Describe(std::move(lengths));
  const size_t warm_up = rows.size() - of.count;
  table->notes.push_back(RankName(trace) + ": " + Counted(of.count, "step") + " by " +
                         steps.source + ", median " + Duration(static_cast<int64_t>(of.median)) +
                         ", longest " + Duration(static_cast<int64_t>(of.max)) +
                         (warm_up == 0 ? "" : "; " + std::to_string(warm_up) + " of warm-up"));
}

}  // namespace

Table TabulateSteps(const Run& run) {
  Table table{.name = "steps",
              .title = "Training steps, by rank",
              .columns = {{"rank", Unit::kCount},
                          {"step", Unit::kCount},
                          {"start_ns", Unit::kNs, true},
                          {"total_ns", Unit::kNs},
                          {"device_ns", Unit::kNs, true},
                          {"device_busy_percent", Unit::kPercent},
                          {"gpu_ns", Unit::kNs},
                          {"kernels", Unit::kCount},
                          {"forward_ns", Unit::kNs, true},
                          {"backward_ns", Unit::kNs, true},
                          {"optimizer_ns", Unit::kNs, true},
                          {"data_ns", Unit::kNs, true},
                          {"collection_ns", Unit::kNs, true},
                          {"checkpoint_ns", Unit::kNs, true},
                          {"warm_up", Unit::kText, true}}};
  for (const Trace& trace : run.traces) {
    const StepList& steps = DetectSteps(trace);
    if (steps.list.empty()) {
      table.notes.push_back(RankName(trace) +
                            ": no steps: no optimizer step (--level full), no ProfilerStep, no "
                            "repeating NVTX range, no period of kernels");
    } else {
      AddSteps(trace, steps, &table);
    }
  }
  return table;
}

}  // namespace ranktap::collector

#include "collector/analysis/step_summary.h"

#include <algorithm>

#include "collector/analysis/framework_ranges.h"
#include "collector/analysis/launched_work.h"

namespace ranktap::collector {
namespace {

// The step in which `time` lies; nullptr: in none.
StepRow* StepAt(std::vector<StepRow>* steps, int64_t time) {
  const auto after =
      std::upper_bound(steps->begin(), steps->end(), time,
                       [](int64_t at, const StepRow& row) { return at < row.start; });
  if (after == steps->begin() || time >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

int64_t* PhaseOf(std::string_view name, StepRow* step) {
  if (name == "optimizer") return &step->optimizer_ns;
  if (name == "backward") return &step->backward_ns;
  if (name == "data") return &step->data_ns;
  return nullptr;
}

}  // namespace

std::vector<StepRow> FindSteps(const Trace& trace) {
  const Ranges& ranges = trace.ranges;
  const LaunchedWork work(trace);
  std::vector<StepRow> steps;
  for (const uint32_t row : RangesIn(trace, kStepDomain)) {
    if (ranges.unfinished.At(row) != 0) continue;
    StepRow step{
        .number = ranges.payload.At(row), .start = ranges.start[row], .end = ranges.end[row]};
    for (uint16_t writer = 0; writer < trace.writers.size(); ++writer) {
      step.gpu_ns += work.Between(writer, step.start, step.end);
    }
    steps.push_back(step);
  }
  for (const uint32_t row : RangesIn(trace, kModuleDomain)) {
    StepRow* const step = StepAt(&steps, ranges.start[row]);
    if (step != nullptr && ranges.depth[row] == 0) {
      step->forward_ns += ranges.end[row] - ranges.start[row];
    }
  }
  for (const uint32_t row : RangesIn(trace, kPhaseDomain)) {
    StepRow* const step = StepAt(&steps, ranges.start[row]);
    if (step == nullptr) continue;
    if (int64_t* const phase = PhaseOf(trace.dictionary.String(ranges.name[row]), step)) {
      *phase += ranges.end[row] - ranges.start[row];
    }
  }
  return steps;
}

Table TabulateSteps(const Run& run) {
  Table table{.name = "steps",
              .title = "training steps, each rank",
              .columns = {{"rank", Unit::kCount},
                          {"step", Unit::kCount},
                          {"start_ns", Unit::kNs, true},
                          {"total_ns", Unit::kNs},
                          {"forward_ns", Unit::kNs},
                          {"backward_ns", Unit::kNs},
                          {"optimizer_ns", Unit::kNs},
                          {"data_ns", Unit::kNs},
                          {"gpu_ns", Unit::kNs}}};
  for (const Trace& trace : run.traces) {
    Cell rank;
    if (trace.info.rank) rank = static_cast<int64_t>(*trace.info.rank);
    for (const StepRow& step : FindSteps(trace)) {
      table.rows.push_back({rank, static_cast<int64_t>(step.number), step.start - trace.first_ns,
                            step.end - step.start, step.forward_ns, step.backward_ns,
                            step.optimizer_ns, step.data_ns, step.gpu_ns});
    }
  }
  if (table.rows.empty()) {
    table.notes.push_back(
        "no training step was seen; steps come from PyTorch's optimizers, at --level full");
  }
  return table;
}

}  // namespace ranktap::collector

#include <fmt/core.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/facts/roofline/measured_rows.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

using CounterLine = MeasuredRow;

Cell Count(const Measured& measured) {
  return measured.sum() ? Cell(std::llround(*measured.sum())) : Cell();
}
Cell Mean(const Measured& sum, const Measured& count) {
  return sum.sum() && count.sum() ? Cell(*sum.sum() / *count.sum()) : Cell();
}
Cell Intensity(const CounterLine& line, const Measured& bytes) {
  const std::optional<double> flops = line.Flops();
  return flops && bytes.sum() && *bytes.sum() > 0 ? Cell(*flops / *bytes.sum()) : Cell();
}
Cell OfShapes(const std::optional<int64_t>& value) { return value ? Cell(*value) : Cell(); }
// None where tensor cores may have worked and nobody counted what.
std::optional<double> MeasuredShare(const CounterLine& line) {
  const std::optional<double> flops = line.work.Flops();
  if (!flops || line.flops.value_or(0) == 0) return {};
  return *flops / static_cast<double>(*line.flops);
}

const ColumnsOf<CounterLine> kHeading = {
    {"rank", Unit::kCount, kRankMeaning,
     [](const CounterLine& line) { return RankCell(*line.trace); }, Shown::kDetail},
    {"name", Unit::kText, "The kernel; with --by the operator or the module.",
     [](const CounterLine& line) { return line.name; }},
};
const ColumnsOf<CounterLine> kLaunch = {
    {"bottom_operator", Unit::kText, "The innermost operator around the launch.",
     [](const CounterLine& line) { return line.innermost; }},
    {"top_operator", Unit::kText, "The outermost operator around the launch.",
     [](const CounterLine& line) { return line.outermost; }},
    {"module", Unit::kText, "The module that the operator belongs to.",
     [](const CounterLine& line) { return line.module; }, Shown::kDetail},
};
const ColumnsOf<CounterLine> kMeasuredCounts = {
    {"launches", Unit::kCount, "The kernels that counters were read for.",
     [](const CounterLine& line) { return line.launches; }},
    {"flops", Unit::kFlops, "The operations of all types; a fused multiply-add is two.",
     [](const CounterLine& line) -> Cell {
       const std::optional<double> flops = line.work.Flops();
       return flops ? Cell(std::llround(*flops)) : Cell();
     }},
    {"flops_fp16", Unit::kFlops, "The part in 16-bit floats, outside of tensor cores.",
     [](const CounterLine& line) { return Count(line.work.fp16); }, Shown::kDetail},
    {"flops_fp32", Unit::kFlops, "The part in 32-bit floats, outside of tensor cores.",
     [](const CounterLine& line) { return Count(line.work.fp32); }, Shown::kDetail},
    {"flops_fp64", Unit::kFlops, "The part in 64-bit floats, outside of tensor cores.",
     [](const CounterLine& line) { return Count(line.work.fp64); }, Shown::kDetail},
    {"flops_tensor", Unit::kFlops, "The part on tensor cores, where the profiler counted it.",
     [](const CounterLine& line) { return Count(line.work.tensor_flops); }, Shown::kDetail},
    {"tensor_instructions", Unit::kCount,
     "The warps' instructions for tensor cores. How many FLOPs one is depends on its shape.",
     [](const CounterLine& line) { return Count(line.work.tensor_instructions); }, Shown::kDetail},
    {"l1_bytes", Unit::kBytes, "The bytes that passed the L1 caches.",
     [](const CounterLine& line) { return Count(line.work.l1); }},
    {"l2_bytes", Unit::kBytes, "The bytes that passed the L2 cache.",
     [](const CounterLine& line) { return Count(line.work.l2); }},
    {"memory_bytes", Unit::kBytes, "The bytes that passed the device's memory.",
     [](const CounterLine& line) { return Count(line.work.device); }},
    {"l1_intensity", Unit::kCount,
     "FLOPs, of the shapes where tensor cores' are not counted, divided by the bytes of L1.",
     [](const CounterLine& line) { return Intensity(line, line.work.l1); }, Shown::kDetail},
    {"l2_intensity", Unit::kCount, "FLOPs divided by the bytes of L2.",
     [](const CounterLine& line) { return Intensity(line, line.work.l2); }, Shown::kDetail},
    {"memory_intensity", Unit::kCount, "FLOPs divided by the bytes of the device's memory.",
     [](const CounterLine& line) { return Intensity(line, line.work.device); }},
    {"occupancy_percent", Unit::kPercent,
     "The mean of the achieved occupancy: active warps as a share of those that fit.",
     [](const CounterLine& line) { return Mean(line.work.occupancy, line.work.occupied); }},
    {"tensor_busy_percent", Unit::kPercent,
     "The mean share of cycles in which tensor cores worked.",
     [](const CounterLine& line) { return Mean(line.work.tensor_busy, line.work.tensors); }},
    {"time_ns", Unit::kNs,
     "The same kernels' time in this run, which --ncu joined the counters to.",
     [](const CounterLine& line) { return Count(line.work.own_ns); }, Shown::kDetail},
    {"measured_ns", Unit::kNs,
     "The kernels' time under the profiler, which runs them alone and at a fixed clock.",
     [](const CounterLine& line) { return Count(line.work.duration_ns); }, Shown::kDetail},
};
const ColumnsOf<CounterLine> kAnalytic = {
    {"analytic_flops", Unit::kFlops, "What FlopCounterMode counts from the operators' shapes.",
     [](const CounterLine& line) { return OfShapes(line.flops); }},
    {"analytic_bytes", Unit::kBytes, "What the operators move at least, by their shapes.",
     [](const CounterLine& line) { return OfShapes(line.moved); }, Shown::kDetail},
    {"measured_percent", Unit::kPercent, "Measured FLOPs as a share of the analytic ones.",
     [](const CounterLine& line) -> Cell {
       const std::optional<double> share = MeasuredShare(line);
       return share ? Cell(100 * *share) : Cell();
     }},
};

}  // namespace

Table TabulateCounters(const Run& run, const ReportOptions& options) {
  const std::string_view by = options.by.empty() ? "kernel" : std::string_view(options.by);
  const MeasuredRows measured = SummarizeMeasured(run, by);
  const std::vector<CounterLine>& rows = measured.rows;
  std::vector<std::string> notes;
  for (const MeasuredRows::Unjoined& of : measured.unjoined) {
    notes.push_back(
        fmt::format("{}: counters of {} kernels beside {} launches: nobody knows which belong "
                    "together, so no operator has them",
                    RankName(*of.trace), of.kernels, of.launches));
  }
  notes.insert(notes.end(), measured.contradictions.begin(), measured.contradictions.end());
  const bool is_launch = by == "launch", has_shapes = by == "operator" || by == "module";
  Table table =
      TableOf(fmt::format("Hardware counters, by {}", by),
              JoinedColumns({kHeading, is_launch ? kLaunch : ColumnsOf<CounterLine>(),
                             kMeasuredCounts, has_shapes ? kAnalytic : ColumnsOf<CounterLine>()}),
              rows);
  if (rows.empty()) {
    notes.emplace_back(
        "no hardware counters: ranktap reads none, they need rights and run kernels one at a "
        "time; files of Kineto's CUPTI range profiler have them, ranktap export RUN --format ncu "
        "prints the command that measures a run's kernels, and --ncu FILE reads what that wrote");
  }
  table.notes = std::move(notes);
  return table;
}

}  // namespace ranktap::collector

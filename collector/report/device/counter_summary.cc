#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/facts/framework/op_modules.h"
#include "collector/facts/roofline/measured_work.h"
#include "collector/facts/roofline/roofline.h"
#include "collector/report/cells.h"
#include "collector/report/columns.h"
#include "collector/report/reports.h"
#include "collector/trace/sort_rows.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

// Beyond it counters and shapes tell of different work.
constexpr double kContradiction = 0.10;
constexpr size_t kContradictionsNamed = 3;

struct Line {
  const Trace* trace = nullptr;
  std::string name, innermost, outermost, module;
  int64_t launches = 0;
  MeasuredWork work;
  std::optional<int64_t> flops, moved;  // of the operators' shapes
};

Cell Count(const Measured& measured) {
  return measured.sum() ? Cell(std::llround(*measured.sum())) : Cell();
}
Cell Mean(const Measured& sum, const Measured& count) {
  return sum.sum() && count.sum() ? Cell(*sum.sum() / *count.sum()) : Cell();
}
Cell Intensity(const Line& line, const Measured& bytes) {
  const std::optional<double> flops = line.work.Flops();
  return flops && bytes.sum() && *bytes.sum() > 0 ? Cell(*flops / *bytes.sum()) : Cell();
}
Cell OfShapes(const std::optional<int64_t>& value) { return value ? Cell(*value) : Cell(); }
// None where tensor cores may have worked and nobody counted what.
std::optional<double> MeasuredShare(const Line& line) {
  const std::optional<double> flops = line.work.Flops();
  if (!flops || line.flops.value_or(0) == 0) return {};
  return *flops / static_cast<double>(*line.flops);
}

const ColumnsOf<Line> kHeading = {
    {"rank", Unit::kCount, kRankMeaning, [](const Line& line) { return RankCell(*line.trace); },
     Shown::kDetail},
    {"name", Unit::kText, "The kernel; with --by the operator or the module.",
     [](const Line& line) { return line.name; }},
};
const ColumnsOf<Line> kLaunch = {
    {"bottom_operator", Unit::kText, "The innermost operator around the launch.",
     [](const Line& line) { return line.innermost; }},
    {"top_operator", Unit::kText, "The outermost operator around the launch.",
     [](const Line& line) { return line.outermost; }},
    {"module", Unit::kText, "The module that the operator belongs to.",
     [](const Line& line) { return line.module; }, Shown::kDetail},
};
const ColumnsOf<Line> kCounts = {
    {"launches", Unit::kCount, "The kernels that counters were read for.",
     [](const Line& line) { return line.launches; }},
    {"flops", Unit::kFlops, "The operations of all types; a fused multiply-add is two.",
     [](const Line& line) -> Cell {
       const std::optional<double> flops = line.work.Flops();
       return flops ? Cell(std::llround(*flops)) : Cell();
     }},
    {"flops_fp16", Unit::kFlops, "The part in 16-bit floats, outside of tensor cores.",
     [](const Line& line) { return Count(line.work.fp16); }, Shown::kDetail},
    {"flops_fp32", Unit::kFlops, "The part in 32-bit floats, outside of tensor cores.",
     [](const Line& line) { return Count(line.work.fp32); }, Shown::kDetail},
    {"flops_fp64", Unit::kFlops, "The part in 64-bit floats, outside of tensor cores.",
     [](const Line& line) { return Count(line.work.fp64); }, Shown::kDetail},
    {"flops_tensor", Unit::kFlops, "The part on tensor cores, where the profiler counted it.",
     [](const Line& line) { return Count(line.work.tensor_flops); }, Shown::kDetail},
    {"tensor_instructions", Unit::kCount,
     "The warps' instructions for tensor cores. How many FLOPs one is depends on its shape.",
     [](const Line& line) { return Count(line.work.tensor_instructions); }, Shown::kDetail},
    {"l1_bytes", Unit::kBytes, "The bytes that passed the L1 caches.",
     [](const Line& line) { return Count(line.work.l1); }},
    {"l2_bytes", Unit::kBytes, "The bytes that passed the L2 cache.",
     [](const Line& line) { return Count(line.work.l2); }},
    {"memory_bytes", Unit::kBytes, "The bytes that passed the device's memory.",
     [](const Line& line) { return Count(line.work.device); }},
    {"l1_intensity", Unit::kCount, "FLOPs divided by the bytes of L1.",
     [](const Line& line) { return Intensity(line, line.work.l1); }, Shown::kDetail},
    {"l2_intensity", Unit::kCount, "FLOPs divided by the bytes of L2.",
     [](const Line& line) { return Intensity(line, line.work.l2); }, Shown::kDetail},
    {"memory_intensity", Unit::kCount, "FLOPs divided by the bytes of the device's memory.",
     [](const Line& line) { return Intensity(line, line.work.device); }},
    {"occupancy_percent", Unit::kPercent,
     "The mean of the achieved occupancy: active warps as a share of those that fit.",
     [](const Line& line) { return Mean(line.work.occupancy, line.work.occupied); }},
    {"tensor_busy_percent", Unit::kPercent,
     "The mean share of cycles in which tensor cores worked.",
     [](const Line& line) { return Mean(line.work.tensor_busy, line.work.tensors); }},
    {"measured_ns", Unit::kNs,
     "The kernels' time under the profiler, which runs them alone and at a fixed clock.",
     [](const Line& line) { return Count(line.work.duration_ns); }, Shown::kDetail},
};
const ColumnsOf<Line> kAnalytic = {
    {"analytic_flops", Unit::kFlops, "What FlopCounterMode counts from the operators' shapes.",
     [](const Line& line) { return OfShapes(line.flops); }},
    {"analytic_bytes", Unit::kBytes, "What the operators move at least, by their shapes.",
     [](const Line& line) { return OfShapes(line.moved); }, Shown::kDetail},
    {"measured_percent", Unit::kPercent, "Measured FLOPs as a share of the analytic ones.",
     [](const Line& line) -> Cell {
       const std::optional<double> share = MeasuredShare(line);
       return share ? Cell(100 * *share) : Cell();
     }},
};

std::string OperatorName(const Trace& trace, uint32_t op) {
  return op == kNone ? "" : std::string(trace.dictionary.String(trace.operators.name[op]));
}

class Lines {
 public:
  explicit Lines(std::string_view by) : by_(by) {}

  void Add(const Trace& trace, const MeasuredKernels& measured) {
    if (measured.kernels.empty()) return;
    const std::vector<OpPlace> places = PlaceOperators(trace);
    for (const MeasuredKernel& kernel : measured.kernels) {
      const uint32_t op = kernel.counted != kNone ? kernel.counted : kernel.innermost;
      const std::string module(op == kNone ? "" : trace.dictionary.String(places[op].module));
      Line& line = LineOf(trace, kernel, op, module);
      line.work.Add(kernel.work);
      ++line.launches;
    }
    if (by_ == "operator" || by_ == "module") AddAnalytic(trace, measured, places);
  }
  std::vector<Line> Take() {
    if (by_ != "launch") {
      SortRows(&lines_, [](const Line& a, const Line& b) {
        return a.work.Flops().value_or(0) > b.work.Flops().value_or(0);
      });
    }
    return std::move(lines_);
  }

 private:
  Line& LineOf(const Trace& trace, const MeasuredKernel& kernel, uint32_t op,
               const std::string& module) {
    const std::string_view recorded =
        trace.dictionary.String(trace.kernel_counters.name[kernel.row]);
    const std::string name = by_ == "operator" ? OperatorName(trace, op)
                             : by_ == "module" ? module
                                               : ReadableKernelName(recorded);
    if (by_ != "launch") {
      const auto [at, is_new] = by_name_.try_emplace({&trace, name}, lines_.size());
      if (!is_new) return lines_[at->second];
    }
    Line& line = lines_.emplace_back();
    line.trace = &trace;
    line.name = name;
    line.innermost = OperatorName(trace, kernel.innermost);
    line.outermost = OperatorName(trace, kernel.outermost);
    line.module = module;
    return line;
  }

  // Each operator once, however many kernels it launched.
  void AddAnalytic(const Trace& trace, const MeasuredKernels& measured,
                   const std::vector<OpPlace>& places) {
    std::map<uint32_t, const RooflinePoint*> points;
    for (const MeasuredKernel& kernel : measured.kernels) points.try_emplace(kernel.counted);
    for (const RooflinePoint& point : MeasureRoofline(trace).points) {
      if (const auto at = points.find(point.op); at != points.end() && point.op != kNone) {
        at->second = &point;
      }
    }
    for (const auto& [op, point] : points) {
      if (point == nullptr) continue;
      const std::string name = by_ == "operator"
                                   ? OperatorName(trace, op)
                                   : std::string(trace.dictionary.String(places[op].module));
      Line& line = lines_[by_name_.at({&trace, name})];
      line.flops = line.flops.value_or(0) + point->flops;
      line.moved = line.moved.value_or(0) + point->bytes.read + point->bytes.written;
    }
  }

  std::string_view by_;
  std::vector<Line> lines_;
  std::map<std::pair<const Trace*, std::string>, size_t> by_name_;
};

void NoteJoin(const Trace& trace, const MeasuredKernels& measured,
              std::vector<std::string>* notes) {
  if (measured.kernels.empty() || measured.is_joined) return;
  notes->push_back(
      fmt::format("{}: counters of {} kernels beside {} launches: nobody knows which belong "
                  "together, so no operator has them",
                  RankName(trace), measured.kernels.size(), measured.launches));
}

void NoteContradictions(const std::vector<Line>& lines, std::vector<std::string>* notes) {
  size_t named = 0;
  for (const Line& line : lines) {
    const std::optional<double> share = MeasuredShare(line);
    if (!share || std::abs(*share - 1) <= kContradiction) continue;
    if (++named > kContradictionsNamed) break;
    const bool has_tensor_cores =
        line.work.tensor_instructions.sum().value_or(0) > 0 && !line.work.tensor_flops.sum();
    notes->push_back(fmt::format(
        "{}: the device did {:.0f} % of the FLOPs that the shapes say{}", line.name, 100 * *share,
        has_tensor_cores ? ": the rest is on tensor cores, whose FLOPs nobody counted"
        : *share < 1     ? ": an algorithm with fewer (Winograd, FFT), or tensor cores, which the "
                           "counters leave out"
                         : ": padding, or arithmetic beside the products"));
  }
}

}  // namespace

Table TabulateCounters(const Run& run, const ReportOptions& options) {
  const std::string_view by = options.by.empty() ? "kernel" : std::string_view(options.by);
  Lines lines(by);
  std::vector<std::string> notes;
  for (const Trace& trace : run.traces) {
    const MeasuredKernels measured = JoinKernelCounters(trace);
    lines.Add(trace, measured);
    NoteJoin(trace, measured, &notes);
  }
  const std::vector<Line> rows = lines.Take();
  const bool is_launch = by == "launch", has_shapes = by == "operator" || by == "module";
  Table table = TableOf(fmt::format("Hardware counters, by {}", by),
                        JoinedColumns({kHeading, is_launch ? kLaunch : ColumnsOf<Line>(), kCounts,
                                       has_shapes ? kAnalytic : ColumnsOf<Line>()}),
                        rows);
  NoteContradictions(rows, &notes);
  if (rows.empty()) {
    notes.emplace_back(
        "no hardware counters: ranktap reads none, they need rights and run kernels one at a "
        "time; files of Kineto's CUPTI range profiler have them, and ranktap export RUN --format "
        "ncu prints the command that measures a run's kernels");
  }
  table.notes = std::move(notes);
  return table;
}

}  // namespace ranktap::collector

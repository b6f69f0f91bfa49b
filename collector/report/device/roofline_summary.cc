#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "collector/facts/roofline/roofline_rows.h"
#include "collector/report/columns.h"
#include "collector/report/device/roofline_notes.h"
#include "collector/report/reports.h"

namespace ranktap::collector {
namespace {

struct RooflineLine {
  RooflineRow row;
  int64_t total_ns = 0;    // of all rows
  bool on_device = false;  // any row has times
  bool on_host = false;    // they are the host's
};

Cell Rounded(std::optional<double> value) { return value ? Cell(std::llround(*value)) : Cell(); }
Cell OrNothing(std::optional<double> value) { return value ? Cell(*value) : Cell(); }
// For calls whose shapes are not known 0 would be a guess.
Cell Told(const RooflineLine& line, int64_t value) {
  return line.row.told == 0 && value == 0 ? Cell() : Cell(value);
}
Cell Time(const RooflineLine& line, int64_t ns) { return line.on_device ? Cell(ns) : Cell(); }
Cell Timed(const RooflineLine& line, std::optional<double> value) {
  return line.on_device && (line.row.told > 0 || line.row.flops > 0) ? Rounded(value) : Cell();
}
Cell GigabytesPerSecond(const RooflineLine& line) {
  const std::optional<double> bandwidth = line.row.AttainedBandwidth();
  return line.on_device && line.row.told > 0 && bandwidth ? Cell(*bandwidth / 1e9) : Cell();
}
Cell Share(const RooflineLine& line) {
  if (line.total_ns == 0) return {};
  return 100 * static_cast<double>(line.row.time_ns) / static_cast<double>(line.total_ns);
}

std::string BoundName(const RooflineLine& line) {
  const RoofBound bound = line.row.Bound();
  if (line.on_host && bound == RoofBound::kMemory) return "memory";
  if (line.on_host && bound == RoofBound::kL2) return "cache";
  return std::string(NameOf(bound));
}

// All units that its FLOPs ran on; with a question mark where no kernel's name tells.
std::string Units(const RooflineRow& row) {
  std::string units;
  for (size_t i = 0; i < kComputeUnits; ++i) {
    if ((row.units >> i & 1) == 0) continue;
    units += (units.empty() ? "" : " + ") + std::string(NameOf(static_cast<ComputeUnit>(i)));
  }
  return row.unit_unsaid ? units + "?" : units;
}

template <FlopKind kKind>
int64_t FlopsOf(const RooflineLine& line) {
  return line.row.flops_of[static_cast<size_t>(kKind)];
}

std::string HeadingMeaning(std::string_view by) {
  return by == "operator" ? "The operator, or the range around kernels without one."
                          : fmt::format("The {} that the row is about (--by).", by);
}

ColumnsOf<RooflineLine> Heading(std::string_view by) {
  return {
      {std::string(by), Unit::kText, HeadingMeaning(by),
       [](const RooflineLine& line) { return line.row.name; }},
      {"calls", Unit::kCount, "The calls of the operator; with --by kernel the launches.",
       [](const RooflineLine& line) { return line.row.calls; }},
      {"kernels", Unit::kCount, "The kernels that it launched.",
       [](const RooflineLine& line) { return line.row.kernels; }, Shown::kDetail},
      {"time_ns", Unit::kNs, "The durations of its kernels, copies and memsets, added up.",
       [](const RooflineLine& line) { return Time(line, line.row.time_ns); }},
      {"kernel_ns", Unit::kNs, "The durations of its kernels, added up.",
       [](const RooflineLine& line) { return Time(line, line.row.kernel_ns); }, Shown::kDetail},
      {"share_percent", Unit::kPercent, "The share of the time of all rows.",
       [](const RooflineLine& line) { return Share(line); }},
  };
}

const ColumnsOf<RooflineLine> kCounts = {
    {"flops", Unit::kFlops, "The operations as FlopCounterMode counts them; only products count.",
     [](const RooflineLine& line) { return Told(line, line.row.flops); }},
    {"flops_fp64", Unit::kFlops, "The part that the device multiplied in this type.",
     [](const RooflineLine& line) { return FlopsOf<FlopKind::kFp64>(line); }, Shown::kDetail},
    {"flops_fp32", Unit::kFlops, "The part in 32-bit floats, without TF32.",
     [](const RooflineLine& line) { return FlopsOf<FlopKind::kFp32>(line); }, Shown::kDetail},
    {"flops_tf32", Unit::kFlops, "The part in 32-bit floats on tensor cores.",
     [](const RooflineLine& line) { return FlopsOf<FlopKind::kTf32>(line); }, Shown::kDetail},
    {"flops_fp16", Unit::kFlops, "The part that the device multiplied in this type.",
     [](const RooflineLine& line) { return FlopsOf<FlopKind::kFp16>(line); }, Shown::kDetail},
    {"flops_bf16", Unit::kFlops, "The part that the device multiplied in this type.",
     [](const RooflineLine& line) { return FlopsOf<FlopKind::kBf16>(line); }, Shown::kDetail},
    {"flops_fp8", Unit::kFlops, "The part that the device multiplied in this type.",
     [](const RooflineLine& line) { return FlopsOf<FlopKind::kFp8>(line); }, Shown::kDetail},
    {"flops_int8", Unit::kFlops, "The part that the device multiplied in this type.",
     [](const RooflineLine& line) { return FlopsOf<FlopKind::kInt8>(line); }, Shown::kDetail},
    {"flops_other", Unit::kFlops, "The part whose type ranktap does not know.",
     [](const RooflineLine& line) { return FlopsOf<FlopKind::kOther>(line); }, Shown::kDetail},
    {"moved_bytes", Unit::kBytes,
     "The bytes moved at least: each input once and each output once, from shapes and types.",
     [](const RooflineLine& line) { return Told(line, line.row.bytes()); }},
    {"read_bytes", Unit::kBytes, "The part of the moved bytes that the device reads.",
     [](const RooflineLine& line) { return Told(line, line.row.read); }, Shown::kDetail},
    {"written_bytes", Unit::kBytes, "The part of the moved bytes that the device writes.",
     [](const RooflineLine& line) { return Told(line, line.row.written); }, Shown::kDetail},
    {"intensity", Unit::kCount,
     "The arithmetic intensity: FLOPs divided by the bytes moved to and from the device's memory.",
     [](const RooflineLine& line) { return OrNothing(line.row.Intensity()); }},
};

const ColumnsOf<RooflineLine> kRoofsOf = {
    {"unit", Unit::kText,
     "The unit that ran its products, by the kernels' names; \"?\" if ranktap knows the type "
     "alone.",
     [](const RooflineLine& line) { return Units(line.row); }, Shown::kDetail},
    {"flops_per_second", Unit::kFlopsPerSecond,
     "The rate that it attained in the time that has a roof; without any roof in all its time.",
     [](const RooflineLine& line) { return Timed(line, line.row.Attained()); }},
    {"gb_per_s", Unit::kGbPerSecond, "The bytes moved divided by the same time.",
     [](const RooflineLine& line) { return GigabytesPerSecond(line); }, Shown::kDetail},
    {"roof_flops_per_second", Unit::kFlopsPerSecond,
     "The rate that it would attain in its least time.",
     [](const RooflineLine& line) { return Rounded(line.row.Roof()); }, Shown::kDetail},
    {"percent_of_roof", Unit::kPercent,
     "The least time, at the data sheet's boost clock, as a share of its time.",
     [](const RooflineLine& line) { return OrNothing(line.row.PercentOfRoof()); }},
    {"percent_at_base_clock", Unit::kPercent,
     "The least time, at the base clock, as a share of its time.",
     [](const RooflineLine& line) { return OrNothing(line.row.PercentAtBase()); }, Shown::kDetail},
    {"percent_at_measured_clock", Unit::kPercent,
     "The least time, at the SM clock that NVML saw, as a share of its time.",
     [](const RooflineLine& line) { return OrNothing(line.row.PercentAtMeasured()); },
     Shown::kDetail},
    {"bound", Unit::kText,
     "What limits it: compute, HBM (device memory; of a host *memory*), L2 (*cache*), latency, "
     "transfer, communication, extra (a side kernel), unknown.",
     [](const RooflineLine& line) { return BoundName(line); }},
    {"least_ns", Unit::kNs,
     "The time that the device needs: FLOPs at its unit's peak, or bytes at its memory's "
     "bandwidth.",
     [](const RooflineLine& line) {
       return line.row.least_ns > 0 ? Cell(std::llround(line.row.least_ns)) : Cell();
     }},
    {"saved_ns", Unit::kNs,
     "The time that the program would save if each counted call met its roof.",
     [](const RooflineLine& line) {
       return line.row.counted_ns > 0 ? Cell(std::llround(line.row.saved_ns)) : Cell();
     }},
    {"uncounted_ns", Unit::kNs, "The part of its time that has no roof.",
     [](const RooflineLine& line) { return Time(line, line.row.time_ns - line.row.counted_ns); },
     Shown::kDetail},
    {"above_roof", Unit::kCount,
     "The calls that beat the roof: a wrong count, unit or clock, or data in the L2 cache.",
     [](const RooflineLine& line) { return line.row.above; }, Shown::kDetail},
    {"tier", Unit::kText,
     "Where FLOPs and bytes come from; \"analytic\" means from shapes and types.",
     [](const RooflineLine&) { return std::string(kAnalyticTier); }, Shown::kDetail},
};

}  // namespace

RooflineQuestion RooflineQuestionOf(const ReportOptions& options) {
  return {.by = RooflineByNamed(options.by).value_or(RooflineBy::kOperator),
          .depth = options.depth,
          .roofs = {.device = options.device,
                    .peak_flops = options.peak_flops,
                    .peak_bandwidth = options.peak_bandwidth}};
}

Table TabulateRoofline(const Run& run, const ReportOptions& options) {
  const RooflineQuestion question = RooflineQuestionOf(options);
  RooflineRows rows = SummarizeRoofline(run, question);
  int64_t total = 0;
  for (const RooflineRow& row : rows.rows) total += row.time_ns;
  std::vector<RooflineLine> lines;
  lines.reserve(rows.rows.size());
  for (const RooflineRow& row : rows.rows) {
    lines.push_back({row, total, rows.on_device || rows.on_host, rows.on_host});
  }
  const std::string_view by = kRooflineByNames[static_cast<size_t>(question.by)];
  Table table = TableOf(fmt::format("Roofline, analytic, by {}, all ranks", by),
                        JoinedColumns({Heading(by), kCounts, kRoofsOf}), lines);
  table.notes = NotesOnRoofline(run, question, rows);
  return table;
}

}  // namespace ranktap::collector

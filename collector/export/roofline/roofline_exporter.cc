// Rows of the roofline as points, and the roofs of their device as ceilings.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <limits>

#include "collector/export/exporters.h"
#include "collector/export/output_file.h"
#include "collector/export/roofline/log_axis.h"
#include "collector/export/roofline/roofline_chart.h"
#include "collector/facts/framework/layers.h"
#include "collector/facts/roofline/measured_rows.h"
#include "collector/facts/roofline/roofline_rows.h"

namespace ranktap::collector {
namespace {

constexpr double kAbovePercent = 102;  // as JudgePoint: clocks are known to some percent

uint32_t BitOf(ComputeUnit unit) { return 1U << static_cast<unsigned>(unit); }

int64_t FlopsOf(const RooflineRow& row, FlopKind kind) {
  return row.flops_of[static_cast<size_t>(kind)];
}

// The names of each unit's ceilings and points.
class UnitLabels {
 public:
  UnitLabels(const RooflineRows& rows, bool one_peak) : one_peak_(one_peak) {
    for (const RooflineRow& row : rows.rows) {
      used_ |= row.units;
      has_fp16_ |= FlopsOf(row, FlopKind::kFp16) > 0;
      has_bf16_ |= FlopsOf(row, FlopKind::kBf16) > 0;
    }
  }
  bool IsUsed(ComputeUnit unit) const { return (used_ & BitOf(unit)) != 0; }

  std::string Of(ComputeUnit unit) const {
    if (one_peak_) return "all types";
    // Both run at one speed; bf16 is what training has.
    if (unit != ComputeUnit::kHalfTensor) return std::string(NameOf(unit));
    return !has_bf16_ && has_fp16_ ? "fp16 tensor"
           : has_fp16_             ? "fp16, bf16 tensor"
                                   : "bf16 tensor";
  }
  // The unit of a row; of several nobody knows the shares, so none.
  std::string Of(const RooflineRow& row) const {
    if (row.units == 0 || one_peak_) return row.units == 0 ? "" : Of(ComputeUnit::kFp32);
    if (std::has_single_bit(row.units)) {
      return Of(static_cast<ComputeUnit>(std::countr_zero(row.units)));
    }
    return "several units";
  }

 private:
  bool one_peak_;
  uint32_t used_ = 0;
  bool has_fp16_ = false, has_bf16_ = false;
};

void AddCeilings(const Roofs& roofs, const UnitLabels& labels, RooflineChart* chart) {
  for (size_t i = 0; i < kComputeUnits; ++i) {
    const auto unit = static_cast<ComputeUnit>(i);
    // The two that everybody compares with, and those that were used.
    const bool is_drawn =
        labels.IsUsed(unit) || unit == ComputeUnit::kFp32 || unit == ComputeUnit::kHalfTensor;
    const double flops = roofs.Flops({.known = UnitKnown::kByKernel, .unit = unit});
    // A unit that the device lacks is another's work.
    if (!is_drawn || flops <= 0 || (roofs.given_flops <= 0 && roofs.UnitThere(unit) != unit)) {
      continue;
    }
    const std::string label = labels.Of(unit);
    const bool is_dashed = roofs.calibrated != nullptr && !roofs.calibrated->has(unit);
    chart->ceilings.push_back({label, label, false, flops, is_dashed});
    if (roofs.given_flops > 0) break;
  }
  chart->ceilings.push_back({"memory", "", true, roofs.Bandwidth()});
  if (roofs.device == nullptr || roofs.given_bandwidth > 0) return;
  const CalibratedPeaks* const own = roofs.calibrated.get();
  chart->ceilings.back().label = "device memory";
  chart->ceilings.back().is_dashed = own != nullptr && !own->has_bandwidth;
  chart->ceilings.push_back(
      {"L2", "", true, roofs.device->l2_bandwidth_gb * 1e9, own != nullptr && !own->has_l2});
}

// More than L2 gives, too, where it is that which held the data.
bool IsAbove(const RooflineRow& row, const Roofs& roofs) {
  const auto percent = row.PercentOfRoof();
  if (!percent || *percent <= kAbovePercent) return false;
  const double l2 = roofs.device == nullptr ? 0 : roofs.device->l2_bandwidth_gb * 1e9;
  const auto bandwidth = row.AttainedBandwidth();
  return row.Bound() != RoofBound::kL2 || !bandwidth || *bandwidth > l2;
}

ChartPoint PointOf(const RooflineRow& row, bool has_times, const UnitLabels& labels,
                   const Roofs& roofs) {
  ChartPoint point;
  point.label = row.name;
  point.type = labels.Of(row);
  point.intensity = row.Intensity().value_or(0);
  point.roof = row.Roof();
  point.bound = NameOf(row.Bound());
  point.at_best = !has_times;
  if (has_times) {
    point.attained = row.Attained().value_or(0);
    point.bandwidth = row.AttainedBandwidth();
    point.time_ns = row.time_ns;
    point.above_roof = IsAbove(row, roofs);
    if (row.counted_ns > 0) point.saved_ns = static_cast<int64_t>(row.saved_ns);
  } else {
    point.attained = row.Roof().value_or(0);
    point.time_ns = static_cast<int64_t>(row.least_ns);
  }
  return point;
}

constexpr size_t kMeasuredRows = 10;     // with up to three marks each
constexpr double kL1BytesOfClock = 128;  // of an SM, since Volta

// What another run's counters say of the same rows: a mark at each level's intensity, below the
// ceilings of L1, L2 and memory.
void AddMeasured(const Run& run, RooflineBy by, const Roofs& roofs, RooflineChart* chart) {
  if (by != RooflineBy::kOperator && by != RooflineBy::kKernel && by != RooflineBy::kModule) return;
  MeasuredRows measured = SummarizeMeasured(run, kRooflineByNames[static_cast<size_t>(by)]);
  if (measured.rows.empty()) return;
  std::ranges::stable_sort(measured.rows, [](const MeasuredRow& a, const MeasuredRow& b) {
    return a.TimeNs().value_or(0) > b.TimeNs().value_or(0);
  });
  double l1 = 0, l2 = 0;
  if (roofs.device != nullptr && roofs.given_bandwidth <= 0) {
    l1 = kL1BytesOfClock * roofs.device->sms * roofs.device->boost_mhz * 1e6;
    l2 = roofs.device->l2_bandwidth_gb * 1e9;
    chart->ceilings.push_back({"L1", "", true, l1, roofs.calibrated != nullptr});
  }
  size_t drawn = 0;
  std::vector<ChartPoint> marks;
  for (const MeasuredRow& row : measured.rows) {
    const std::optional<double> flops = row.Flops(), time = row.TimeNs();
    if (!flops || *flops <= 0 || !time || *time <= 0 || drawn == kMeasuredRows) continue;
    const auto same = std::ranges::find(chart->points, row.name, &ChartPoint::label);
    const struct {
      const char* name;
      const Measured& bytes;
      double peak;
    } levels[] = {{"L1", row.work.l1, l1},
                  {"L2", row.work.l2, l2},
                  {"memory", row.work.device, roofs.Bandwidth()}};
    bool has_mark = false;
    for (const auto& level : levels) {
      if (level.bytes.sum().value_or(0) <= 0) continue;
      has_mark = true;
      ChartPoint& mark = marks.emplace_back();
      mark.label = row.name;
      mark.level = level.name;
      if (same != chart->points.end()) mark.type = same->type;
      mark.intensity = *flops / *level.bytes.sum();
      mark.attained = *flops / *time * 1e9;
      mark.bandwidth = *level.bytes.sum() / *time * 1e9;
      mark.time_ns = static_cast<int64_t>(*time);
      if (level.peak > 0) mark.roof = level.peak * mark.intensity;
    }
    drawn += has_mark ? 1 : 0;
  }
  if (drawn == 0) {
    chart->notes.emplace_back("The counters have no bytes or no times, so no level is drawn.");
  } else {
    chart->notes.push_back(fmt::format(
        "Triangles, squares and diamonds, of {} rows: the same FLOPs by the bytes that passed L1, "
        "L2 and the device's memory, as hardware counters say.",
        drawn));
  }
  for (const std::string& sentence : measured.contradictions) {
    chart->notes.push_back(sentence + ".");
  }
  std::ranges::move(marks, std::back_inserter(chart->points));
}

void AddNotes(const Run& run, const RooflineRows& rows, bool has_times, RooflineChart* chart) {
  chart->notes.emplace_back(
      "Analytic: FLOPs and bytes are of shapes and types, each tensor read or written once. What "
      "is "
      "moved in truth is that or more, so a point lies here or further to the left.");
  if (run.traces.size() > 1) {
    chart->notes.push_back(fmt::format("{} ranks added up.", run.traces.size()));
  }
  if (!has_times) {
    chart->notes.push_back(fmt::format(
        "{}: points lie where they would at best, sized by the "
        "least time that they need there.",
        rows.on_device ? "The times are of another device" : "Nothing ran on a device"));
  }
  for (size_t i = 0; i < rows.roofs.size(); ++i) {
    const Roofs& roofs = rows.roofs[i];
    if (i > 0) {
      chart->notes.push_back(
          fmt::format("There is a {} too, whose ceilings are not drawn.", roofs.name));
    } else if (roofs.device != nullptr) {
      chart->notes.push_back(fmt::format("Peaks{}: {}.",
                                         roofs.calibrated != nullptr
                                             ? " (dashed: the maker's, at the boost clock)"
                                         : roofs.measured == nullptr ? ", dense, at the boost clock"
                                                                     : "",
                                         roofs.device->source));
    }
  }
}

// The ratio that articles plot.
void NoteTorchStat(const Run& run, RooflineChart* chart) {
  for (const Trace& trace : run.traces) {
    const std::vector<Layer> layers = DescribeLayers(trace);
    if (layers.empty()) continue;
    const TorchStatCount& of = layers.front().torchstat;
    const int64_t bytes = of.read + of.written;
    if (of.flops <= 0 || bytes <= 0) return;
    chart->notes.push_back(fmt::format(
        "One forward of {} by torchstat's definitions: {}FLOP by {}B read and written, {:.2f} "
        "FLOP/B.",
        layers.front().name, WithPrefix(static_cast<double>(of.flops)),
        WithPrefix(static_cast<double>(bytes)),
        static_cast<double>(of.flops) / static_cast<double>(bytes)));
    return;
  }
}

Result<RooflineChart> ChartOf(const Run& run, const ExportOptions& options) {
  const RooflineQuestion question{
      .by = RooflineByNamed(options.roofline.by).value_or(RooflineBy::kOperator),
      .depth = options.roofline.depth,
      .roofs = {.device = options.roofline.device,
                .peak_flops = options.roofline.peak_flops,
                .peak_bandwidth = options.roofline.peak_bandwidth}};
  if (const auto wrong = WrongWith(question.roofs)) return Failure{"--device: " + *wrong};
  const RooflineRows rows = SummarizeRoofline(run, question);
  const Roofs roofs = rows.roofs.empty() ? Roofs{} : rows.roofs.front();
  const UnitLabels labels(rows, roofs.given_flops > 0);
  const bool has_times = (rows.on_device || rows.on_host) && rows.is_where_it_ran;
  RooflineChart chart;
  chart.title = fmt::format("Roofline by {}{}", kRooflineByNames[static_cast<size_t>(question.by)],
                            roofs.name.empty() ? "" : " on " + roofs.name);
  AddCeilings(roofs, labels, &chart);
  for (const RooflineRow& row : rows.rows) {
    chart.points.push_back(PointOf(row, has_times, labels, roofs));
  }
  if (has_times) AddMeasured(run, question.by, roofs, &chart);
  AddNotes(run, rows, has_times, &chart);
  NoteTorchStat(run, &chart);
  if (std::ranges::any_of(chart.points, [](const ChartPoint& one) { return one.attained > 0; })) {
    return chart;
  }
  const bool has_flops =
      std::ranges::any_of(rows.rows, [](const RooflineRow& row) { return row.flops > 0; });
  if (!has_flops) {
    return Failure{
        "no FLOPs are counted of any operator: shapes are recorded with ranktap run --level full, "
        "and with torch.profiler's record_shapes=True"};
  }
  return Failure{
      "nothing ran on a device whose peaks are known: name one with --device, or give --peak-flops "
      "and --peak-bandwidth"};
}

bool IsCut(const ExportOptions& options) {
  return options.from != std::numeric_limits<int64_t>::min() ||
         options.to != std::numeric_limits<int64_t>::max() || options.min_duration != 0;
}

}  // namespace

std::optional<Failure> WriteRoofline(const Run& run, std::span<const Trace* const>,
                                     const ExportOptions& options, const std::string& path) {
  if (IsCut(options)) {
    return Failure{path + ": a roofline is of whole operators: name --steps instead"};
  }
  const Result<RooflineChart> chart = ChartOf(run, options);
  if (!chart) return Failure{fmt::format("{}: {}", path, chart.message())};
  Result<OutputFile> file = OutputFile::Create(path);
  if (!file) return Failure{file.message()};
  const bool is_page = path.ends_with(".html") || path.ends_with(".html.gz");
  file->Write(is_page ? DrawRooflineHtml(*chart) : DrawRooflineSvg(*chart));
  return file->Close();
}

}  // namespace ranktap::collector

#include "collector/report/device/roofline_notes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "collector/facts/roofline/model_point.h"
#include "collector/report/capture/origin_advice.h"
#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

// The counted and the uncounted part, over all ranks.
struct Missing {
  int64_t operators = 0, no_formula = 0, no_shapes = 0, no_type = 0, at_least = 0, untimed = 0;
  int64_t uncounted_ns = 0, time_ns = 0, off_device_flops = 0, above = 0;
};

Missing WhatIsMissing(const Run& run, const RooflineRows& rows) {
  Missing sum;
  for (const Trace& trace : run.traces) {
    const Roofline& line = MeasureRoofline(trace);
    sum.operators += line.operators;
    sum.no_formula += line.no_formula;
    sum.no_shapes += line.no_shapes;
    sum.no_type += line.no_type;
    sum.at_least += line.at_least;
    sum.untimed += line.untimed;
    for (const RooflinePoint& point : line.points) {
      if (line.on_device && point.works == 0) sum.off_device_flops += point.flops;
      sum.time_ns += point.time_ns;
      if (point.kind == PointKind::kUncounted) sum.uncounted_ns += point.time_ns;
    }
  }
  for (const RooflineRow& row : rows.rows) sum.above += row.above;
  return sum;
}

// Units that FLOPs of these rows run on there; of none those that most products run on.
uint32_t UnitsOf(const RooflineRows& rows) {
  uint32_t units = 0;
  for (const RooflineRow& row : rows.rows) units |= row.units;
  constexpr uint32_t kUsual = 1u << static_cast<unsigned>(ComputeUnit::kFp32) |
                              1u << static_cast<unsigned>(ComputeUnit::kHalfTensor);
  return units == 0 ? kUsual : units;
}

// "fp32 19.5 TFLOP/s (ridge 12.54)"
std::string Peaks(const Roofs& roofs, uint32_t units) {
  std::string text;
  for (size_t i = 0; i < kComputeUnits; ++i) {
    const auto unit = static_cast<ComputeUnit>(i);
    const double flops = roofs.given_flops > 0     ? roofs.given_flops
                         : roofs.device != nullptr ? roofs.device->flops(unit)
                                                   : 0;
    if (flops <= 0 || (roofs.given_flops <= 0 && (units >> i & 1) == 0)) continue;
    text += text.empty() ? "" : ", ";
    text += roofs.given_flops > 0 ? "all types" : std::string(NameOf(unit));
    text += fmt::format(" {}FLOP/s", FormatFlops(std::llround(flops)));
    if (roofs.Bandwidth() > 0) text += fmt::format(" (ridge {:.2f})", flops / roofs.Bandwidth());
    if (roofs.given_flops > 0) break;
  }
  return text;
}

std::string Clocks(const Roofs& roofs) {
  if (roofs.device == nullptr || roofs.given_flops > 0) return {};
  std::string text;
  const auto add = [&text](int mhz, std::string_view what) {
    if (mhz > 0) text += fmt::format("{}{} {} MHz", text.empty() ? "; clocks: " : ", ", what, mhz);
  };
  if (roofs.calibrated == nullptr) {
    add(roofs.device->base_mhz, "base");
    add(roofs.device->boost_mhz, "boost");
    add(roofs.device->tensor_mhz, "boost of tensor cores");
  }
  add(static_cast<int>(std::lround(roofs.measured_mhz)), "measured");
  return text;
}

std::string OnRoofs(const Roofs& roofs, uint32_t units) {
  if (roofs.device == nullptr && roofs.name.empty() && roofs.given_flops <= 0 &&
      roofs.given_bandwidth <= 0) {
    return "no device is named, so there is no roof: --device NAME, or --peak-flops and "
           "--peak-bandwidth, give one";
  }
  std::string text = fmt::format("roofs of {}", roofs.name.empty() ? "the device" : roofs.name);
  const std::string peaks = Peaks(roofs, units);
  text +=
      peaks.empty() ? ": no peaks are known: --device or --peak-flops gives them" : ": " + peaks;
  if (roofs.Bandwidth() > 0) text += fmt::format("; memory {:g} GB/s", roofs.Bandwidth() / 1e9);
  if (roofs.Bandwidth() <= 0) text += "; the memory's bandwidth is not known: --peak-bandwidth";
  text += Clocks(roofs);
  const bool is_given = roofs.given_flops > 0 || roofs.given_bandwidth > 0;
  if (is_given) text += "; as given";
  if (roofs.device != nullptr) text += fmt::format("; {}", roofs.device->source);
  return text;
}

// "above the ridge of GTX 1080 Ti (23.35): compute-bound, at most 11.30 TFLOP/s"
std::string OnSide(double intensity, const Roofs& roofs) {
  constexpr MathUnit kFloats = {UnitKnown::kUnsaid, ComputeUnit::kFp32};
  const double peak = roofs.Flops(kFloats);
  if (peak <= 0 || roofs.Bandwidth() <= 0) return {};
  const double ridge = peak / roofs.Bandwidth();
  const bool is_compute = intensity >= ridge;
  const double most = std::min(peak, intensity * roofs.Bandwidth());
  return fmt::format(", {} the ridge of {} for fp32 ({:.2f}): {}-bound, at most {}FLOP/s",
                     is_compute ? "above" : "below", roofs.name.empty() ? "the device" : roofs.name,
                     ridge, is_compute ? "compute" : "bandwidth", FormatFlops(std::llround(most)));
}

void AddModelPoint(const Run& run, const RooflineRows& rows, std::vector<std::string>* notes) {
  for (const Trace& trace : run.traces) {
    const std::optional<ModelPoint> point = FindModelPoint(trace);
    if (!point) continue;
    const Roofs roofs = rows.roofs.empty() ? Roofs() : rows.roofs.front();
    const double article = point->IntensityOfArticle(), ours = point->Intensity();
    notes->push_back(fmt::format(
        "a forward of {} as articles count (multiply-adds; parameters and layers' outputs once): "
        "{} by {}, {:.2f} a byte{}",
        point->root, FormatFlops(point->multiply_adds),
        FormatBytes(static_cast<uint64_t>(point->parameter_bytes + point->output_bytes)), article,
        OnSide(article, roofs)));
    notes->push_back(
        fmt::format("the same as counted here (2 a multiply-add; each operator's inputs and "
                    "outputs): {}FLOP by "
                    "{}, {:.2f} a byte{}",
                    FormatFlops(point->flops), FormatBytes(static_cast<uint64_t>(point->bytes)),
                    ours, OnSide(ours, roofs)));
    return;  // ranks compute the same
  }
}

void AddMissing(const Run& run, const Missing& missing, std::vector<std::string>* notes) {
  if (missing.no_shapes > 0) {
    notes->push_back(fmt::format(
        "of {} no shapes are recorded, so nothing is counted: {}",
        Counted(static_cast<size_t>(missing.no_shapes), "operator call"),
        AdviceFor(run, {.ours = "--level full records them",
                        .profiler = "torch.profiler records them with record_shapes=True"})));
  }
  if (missing.no_type > 0) {
    notes->push_back(fmt::format("of {} the type of a tensor is not known, so the bytes are not{}",
                                 Counted(static_cast<size_t>(missing.no_type), "operator call"),
                                 run.traces[0].is_ours() ? ": --tensors records it" : ""));
  }
  if (missing.at_least > 0) {
    notes->push_back(fmt::format(
        "of {} what came out is not recorded: bytes are at least these; --tensors records it",
        Counted(static_cast<size_t>(missing.at_least), "operator call")));
  }
  if (missing.uncounted_ns > 0) {
    notes->push_back(fmt::format(
        "{} of the time are kernels without a counted operator: they stand under the operator or "
        "range around them, without a roof",
        FormatShare(missing.uncounted_ns, missing.time_ns)));
  }
  if (missing.off_device_flops > 0) {
    notes->push_back(fmt::format("{}FLOP ran on the host: no roof of a device is theirs",
                                 FormatFlops(missing.off_device_flops)));
  }
  if (missing.untimed > 0) {
    notes->push_back(fmt::format("{} came from CUPTI without times and are left out",
                                 Counted(static_cast<size_t>(missing.untimed), "kernel record")));
  }
  if (missing.above > 0) {
    notes->push_back(
        fmt::format("{} took less than the roof allows: a wrong count, unit or clock, or data that "
                    "the L2 cache "
                    "held (above_roof)",
                    Counted(static_cast<size_t>(missing.above), "call")));
  }
}

}  // namespace

std::vector<std::string> NotesOnRoofline(const Run& run, const RooflineQuestion& question,
                                         const RooflineRows& rows) {
  std::vector<std::string> notes;
  if (const auto wrong = WrongWith(question.roofs)) notes.push_back(*wrong);
  const uint32_t units = UnitsOf(rows);
  for (const Roofs& roofs : rows.roofs) notes.push_back(OnRoofs(roofs, units));
  if (rows.on_host && question.by != RooflineBy::kKernel) {
    notes.emplace_back(
        "times are the operators' on the host; percent_of_roof divides by what ranktap calibrate "
        "measured there on all cores. What fits a cache is taken to lie there: a model by the "
        "shapes, no counter");
  } else if (!rows.on_device) {
    notes.push_back(question.by == RooflineBy::kKernel
                        ? "nothing ran on a device: there are no kernels; --by operator counts the "
                          "operators"
                        : "nothing ran on a device, so times and what was attained are empty; "
                          "least_ns is what --device would need at least");
  } else if (!rows.is_where_it_ran) {
    notes.emplace_back(
        "--device names another device than the one that the times are of: least_ns and bound are "
        "of it, and no percent is");
  }
  const Missing missing = WhatIsMissing(run, rows);
  AddMissing(run, missing, &notes);
  if (std::ranges::any_of(rows.rows, [](const RooflineRow& row) { return row.unit_unsaid; })) {
    notes.emplace_back(
        "a unit with a question mark is of the type alone: no kernel's name says on which it ran");
  }
  const bool is_of_model =
      question.by != RooflineBy::kOperator && question.by != RooflineBy::kKernel;
  if (is_of_model) AddModelPoint(run, rows, &notes);
  return notes;
}

}  // namespace ranktap::collector

#include "collector/report/device/roofline_notes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "collector/report/human_units.h"

namespace ranktap::collector {
namespace {

// What was counted and what was not, over all ranks.
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

// "fp32 19.5 T (ridge 12.54)"
std::string Peaks(const Roofs& roofs) {
  std::string text;
  for (size_t i = 0; i < kComputeUnits; ++i) {
    const auto unit = static_cast<ComputeUnit>(i);
    const double flops = roofs.given_flops > 0     ? roofs.given_flops
                         : roofs.device != nullptr ? roofs.device->flops(unit)
                                                   : 0;
    if (flops <= 0) continue;
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
  add(roofs.device->base_mhz, "base");
  add(roofs.device->boost_mhz, "boost");
  add(roofs.device->tensor_mhz, "boost of tensor cores");
  add(static_cast<int>(std::lround(roofs.measured_mhz)), "measured");
  return text;
}

std::string OnRoofs(const Roofs& roofs) {
  std::string text = fmt::format("roofs of {}", roofs.name.empty() ? "the device" : roofs.name);
  const std::string peaks = Peaks(roofs);
  text +=
      peaks.empty() ? ": no peaks are known; --device or --peak-flops gives them" : ": " + peaks;
  if (roofs.Bandwidth() > 0) text += fmt::format("; memory {:g} GB/s", roofs.Bandwidth() / 1e9);
  if (roofs.Bandwidth() <= 0) text += "; the memory's bandwidth is not known: --peak-bandwidth";
  text += Clocks(roofs);
  const bool is_given = roofs.given_flops > 0 || roofs.given_bandwidth > 0;
  if (is_given) text += "; as given";
  if (roofs.device != nullptr) text += fmt::format("; {}", roofs.device->source);
  return text;
}

void AddMissing(const Missing& missing, std::vector<std::string>* notes) {
  if (missing.no_shapes > 0) {
    notes->push_back(fmt::format(
        "of {} no shapes are recorded, so nothing is counted: --level full records them, and "
        "torch.profiler with record_shapes=True",
        Counted(static_cast<size_t>(missing.no_shapes), "operator call")));
  }
  if (missing.no_type > 0) {
    notes->push_back(fmt::format(
        "of {} the type of a tensor is not known, so the bytes are not: --tensors records it",
        Counted(static_cast<size_t>(missing.no_type), "operator call")));
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
  for (const Roofs& roofs : rows.roofs) notes.push_back(OnRoofs(roofs));
  if (!rows.on_device) {
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
  AddMissing(missing, &notes);
  if (std::ranges::any_of(rows.rows, [](const RooflineRow& row) { return row.unit_unsaid; })) {
    notes.emplace_back(
        "a unit with a question mark is of the type alone: no kernel's name says on which it ran");
  }
  return notes;
}

}  // namespace ranktap::collector

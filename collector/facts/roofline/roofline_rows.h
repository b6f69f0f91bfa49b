// The points of a roofline added up by what is asked: kernels, operators, modules, phases, steps or
// ranks. Reports tabulate them and plots draw them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/roofline/roofline.h"
#include "collector/facts/roofline/roofs.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

enum class RooflineBy : uint8_t { kOperator, kKernel, kModule, kPhase, kStep, kRank };
// "operator", "kernel", ...
std::optional<RooflineBy> RooflineByNamed(std::string_view name);
inline constexpr std::array<std::string_view, 6> kRooflineByNames = {"operator", "kernel", "module",
                                                                     "phase",    "step",   "rank"};

struct RooflineQuestion {
  RooflineBy by = RooflineBy::kOperator;
  // For modules: names are cut below the root after so many parts; negative: not at all.
  int depth = -1;
  RoofQuestion roofs;
};

// How FLOPs are told apart: by the type that is multiplied, 32-bit floats by their unit.
enum class FlopKind : uint8_t { kFp64, kFp32, kTf32, kFp16, kBf16, kFp8, kInt8, kOther };
inline constexpr size_t kFlopKinds = 8;

// Where it came from: the first of the tiers, which needs no counter.
inline constexpr std::string_view kAnalyticTier = "analytic";

struct RooflineRow {
  std::string name;
  std::optional<int64_t> number;  // of a step or a rank
  int64_t calls = 0;              // of operators; of a kernel its launches
  int64_t kernels = 0;            // with times
  int64_t time_ns = 0, kernel_ns = 0;
  std::array<int64_t, kFlopKinds> flops_of{};
  int64_t flops = 0, read = 0, written = 0;
  uint32_t units = 0;        // bits of ComputeUnit that its FLOPs ran on
  bool unit_unsaid = false;  // of some of them no kernel's name tells
  int64_t at_least = 0;      // calls whose outputs' sizes are not known
  int64_t told = 0;          // calls whose shapes and types tell what they move; 0: bytes are none

  // Sums over the points whose roof is known, which are counted.
  int64_t counted_ns = 0, counted_flops = 0, counted_bytes = 0;
  double least_ns = 0;
  double least_at_base = 0, least_at_measured = 0;
  bool has_base = true, has_measured = true;
  double saved_ns = 0;
  int64_t above = 0;                           // calls that took less than their least
  std::array<double, kRoofBounds> bound_ns{};  // time, or without any least time, by bound

  int64_t bytes() const { return read + written; }
  // None where nothing is counted. FLOPs a byte; FLOP/s; B/s; percent. Rates are of the counted
  // time, as the percent is; without any roof of all its time.
  std::optional<double> Intensity() const;
  std::optional<double> Attained() const;
  std::optional<double> AttainedBandwidth() const;
  std::optional<double> Roof() const;  // FLOP/s that it would attain in its least time
  std::optional<double> PercentOfRoof() const;
  std::optional<double> PercentAtBase() const;
  std::optional<double> PercentAtMeasured() const;
  RoofBound Bound() const;  // which most of its time goes to
};

struct RooflineRows {
  // The longest first; steps, ranks and phases in their order.
  std::vector<RooflineRow> rows;
  bool on_device = false;
  bool on_host = false;         // times are the operators' on a processor whose roofs are known
  bool is_where_it_ran = true;  // false: --device names another than the traces'
  std::vector<Roofs> roofs;     // the kinds of devices, each once
};
RooflineRows SummarizeRoofline(const Run& run, const RooflineQuestion& question);

}  // namespace ranktap::collector

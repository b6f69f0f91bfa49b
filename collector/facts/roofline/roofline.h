// What each operator computed and moved, and the device work that did it: the points of a roofline
// before anybody asks how high the roof is (roofs.h) or what shares a row (roofline_rows.h).
//
// Analytic: FLOPs and bytes come from shapes and types, times from the device's records.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/operators/op_bytes.h"
#include "collector/facts/roofline/compute_units.h"
#include "collector/facts/roofline/operator_phases.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// Why the bytes or FLOPs of a point are not known.
enum class PointKind : uint8_t {
  kCounted,        // an operator with a formula
  kUncounted,      // work of an operator, or range, without one
  kTransfer,       // copies between host and device or between devices: no memory's roof is theirs
  kCommunication,  // collectives
};

// A piece of device work.
struct RooflineWork {
  uint32_t span : 31 = 0;  // index into DeviceTimeline(trace)
  uint32_t computes : 1 = true;
};

// Its share of what its operator computes and moves: FLOPs and bytes go to the kernels that
// compute, by their times; to all where no name says which those are.
struct RooflineShare {
  int64_t flops = 0, read = 0, written = 0;
};

// An operator that was counted, once as it ran, with all work below it; or the work that one
// operator or range without a count launched itself.
struct RooflinePoint {
  PointKind kind = PointKind::kUncounted;
  uint32_t op = kNone;  // row of Operators; kNone: none is around
  uint32_t name = 0;    // Dictionary::String of the operator or of the range; 0: neither is there
  uint32_t module = 0;  // Dictionary::String, Root.path; 0: in none
  int64_t step = -1;    // index into DetectSteps(trace); -1: in none
  uint32_t device = kNone;  // kNone: nothing ran on one
  RooflinePhase phase = RooflinePhase::kOther;
  MathType type = MathType::kNone;  // of what is multiplied
  MathUnit unit;
  int64_t flops = 0;  // FlopRule::kCounter
  ByteCount bytes;
  int64_t time_ns = 0;                 // of all its device work
  int64_t host_ns = 0;                 // of an operator, from its begin to its end
  int64_t kernel_ns = 0;               // of its kernels
  int64_t computing_ns = 0;            // of its work that computes (RooflineWork)
  int64_t kernels = 0;                 // with times
  uint32_t first_work = 0, works = 0;  // in Roofline::work
  uint32_t first_share = kNone;        // in Roofline::shares; kNone: it has nothing to share
};

struct Roofline {
  // Operators by start, then work without a counted operator. An operator that only makes views and
  // launched nothing is left out.
  std::vector<RooflinePoint> points;
  std::vector<RooflineWork> work;
  std::vector<RooflineShare> shares;
  RooflineShare ShareOf(const RooflinePoint& point, uint32_t i) const {
    return point.first_share == kNone ? RooflineShare() : shares[point.first_share + i];
  }
  bool on_device = false;  // any work was recorded
  int64_t untimed = 0;     // kernels that CUPTI delivered without times: in no point's time
  // Calls of operators, by what their bytes lacked.
  int64_t no_formula = 0, no_shapes = 0, no_type = 0, at_least = 0;
  int64_t operators = 0;
};

// Sums over its points: FLOPs are those of CountFlops(kCounter), times those of DeviceTimeline and
// of its kernels, each once. Worked out once and kept in the trace's memo.
const Roofline& MeasureRoofline(const Trace& trace);

// The same for who asks counted points alone. Without operators only copies and memsets count:
// kernels are left out there, whose points took 6 % of a verdict.
const Roofline& MeasureCounted(const Trace& trace);

}  // namespace ranktap::collector

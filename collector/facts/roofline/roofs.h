// How high the roof is for a point of a roofline, and how near it the point came.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/roofline/device_peaks.h"
#include "collector/facts/roofline/device_roofs.h"
#include "collector/facts/roofline/host_roofs.h"
#include "collector/facts/roofline/roofline.h"
#include "collector/file/result.h"

namespace ranktap::collector {

enum class RoofBound : uint8_t {
  kUnknown,
  kCompute,
  kMemory,         // HBM or GDDR
  kL2,             // faster than the device's memory, and small enough for the cache
  kLatency,        // too little work for one kernel to reach either roof
  kTransfer,       // between memories of host and devices
  kCommunication,  // collectives
  kExtra,          // a kernel beside those that compute: layouts, parts of sums
};
inline constexpr size_t kRoofBounds = 8;
// "unknown", "compute", "HBM", "L2", "latency", "transfer", "communication", "extra"
std::string_view NameOf(RoofBound bound);

// A person's words about the device. 0 and empty: not given.
struct RoofQuestion {
  std::string device;         // its name, for DevicePeaksNamed
  double peak_flops = 0;      // FLOP/s, of every type
  double peak_bandwidth = 0;  // B/s of its memory
};

// Somebody calibrated the trace's host: roofs of what ran on its processor. Kept in the trace's
// memo, as KnownArithmetic is.
void KnowHost(std::shared_ptr<const HostRoofs> roofs, const Trace& trace);
// The same of GPUs: those of one host.
void KnowDevices(std::shared_ptr<const std::vector<DeviceRoofs>> roofs, const Trace& trace);
// By its name, and by its UUID where the trace has one.
bool IsOfDevice(const DeviceRoofs& roofs, const v1::Device& device);
// 32 digits; empty: the trace has none.
std::string UuidOf(const v1::Device& device);

// The sentence that is wrong with it.
std::optional<std::string> WrongWith(const RoofQuestion& question);

// The roofs of one device of one trace.
struct Roofs {
  const DevicePeaks* device = nullptr;  // nullptr: not in the table
  std::string name;                     // as the table calls it, else as it calls itself
  double given_flops = 0, given_bandwidth = 0;
  double own_bandwidth = 0;  // as CUPTI said
  double measured_mhz = 0;   // mean of the SM clock's samples; 0: there are none
  // False: the work ran on another device; what it took says nothing of this one.
  bool is_where_it_ran = true;
  // Of a processor: set, its own peaks are `device`'s, and what ran on it took the host's time.
  std::shared_ptr<const DevicePeaks> measured;
  std::shared_ptr<const HostRoofs> host;
  // Of a GPU that was measured: `device` is its peaks.
  std::shared_ptr<const CalibratedPeaks> calibrated;

  // FLOP/s at the boost clock; 0: not known. A unit that the device lacks: that which does its
  // work, as CUDA cores for TF32 before Ampere.
  double Flops(const MathUnit& unit) const;
  ComputeUnit UnitThere(ComputeUnit unit) const;
  double Bandwidth() const;
  // For work that moves so much: a calibrated host's caches stand for memory where they hold it.
  double BandwidthFor(int64_t moved) const;
  // At other clocks of the SMs; 0: not known.
  double FlopsAt(const MathUnit& unit, double mhz) const;
};

// The roofs of the devices that the trace worked on, or of one that is asked for where it worked on
// none.
class RoofsOfTrace {
 public:
  RoofsOfTrace(const Trace& trace, const RoofQuestion& question);
  // kNone: of work on no device. Of a trace that worked on none, its host's, where they are known.
  const Roofs& Of(uint32_t device) const;
  const std::vector<std::pair<uint32_t, Roofs>>& all() const { return by_device_; }

 private:
  std::vector<std::pair<uint32_t, Roofs>> by_device_;
  Roofs otherwise_;
};

// Times in ns. A time at which a point met its roof is its least.
struct RoofJudgement {
  RoofBound bound = RoofBound::kUnknown;
  bool is_timed = false;    // it took time there where the roofs are
  bool is_counted = false;  // least_ns is known: its FLOPs or bytes, and the roofs for them
  double roof_flops = 0;    // of its unit; 0: it computes nothing, or not known
  double compute_ns = 0, memory_ns = 0;
  double least_ns = 0;                              // the larger of the two
  double least_at_base = 0, least_at_measured = 0;  // at other clocks; 0: not known
  // It took less than its least: a wrong count, unit or clock, but for what the L2 cache held.
  bool is_above = false;
  // If it met its roof; 0 where it is above, or time or bytes are not known.
  double saved_ns = 0;
};
// `has_device_work`: of the trace; without any, times are asked where a host's roofs are known.
RoofJudgement JudgePoint(const RooflinePoint& point, const Roofs& roofs, bool has_device_work);

}  // namespace ranktap::collector

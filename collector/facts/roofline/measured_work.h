// What hardware counters say that kernels computed and moved, joined to what launched them: the
// measured side of a roofline (roofline.h is the analytic one).
//
// Instructions to FLOPs, and which metric is which level's bytes: Yang, Kurth, Williams,
// "Hierarchical Roofline analysis for GPUs", CCPE 2020, table II; the sums are HTA's
// (CUDA_SASS_INSTRUCTION_COUNTER_FLOPS).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// A sum that is absent until something was measured.
class Measured {
 public:
  void Add(double value) { sum_ = sum_.value_or(0) + value; }
  void Add(const Measured& other) {
    if (other.sum_) Add(*other.sum_);
  }
  const std::optional<double>& sum() const { return sum_; }

 private:
  std::optional<double> sum_;
};

// Of one kernel, or of several added up.
struct MeasuredWork {
  Measured fp16, fp32, fp64;     // FLOPs outside of tensor cores; a fused multiply-add is two
  Measured tensor_flops;         // by sm__ops_path_tensor_*
  Measured tensor_instructions;  // how many FLOPs one is depends on its shape, which is not said
  Measured l1, l2, device;       // bytes that passed L1, L2 and the device's memory
  Measured duration_ns;          // gpu__time_duration.sum
  Measured own_ns;  // of this run's kernels, where another run's counters were joined to them
  Measured occupancy, occupied;   // percent of the warps that fit; how many kernels said so
  Measured tensor_busy, tensors;  // percent of cycles in which the tensor cores worked

  void Add(const MeasuredWork& other);
  // Of all types and units; none where no instruction was counted.
  std::optional<double> Flops() const;
};

struct MeasuredKernel {
  std::string_view name;    // as its profiler wrote it; lives as long as the trace
  uint32_t launch = kNone;  // row of api_calls; kNone: nobody knows which call launched it
  uint32_t innermost = kNone, outermost = kNone;  // rows of operators around the launch
  uint32_t counted = kNone;  // the operator around it that has a formula; kNone: none has
  MeasuredWork work;
};

struct MeasuredKernels {
  std::vector<MeasuredKernel> kernels;  // by start
  size_t launches = 0;                  // calls that launch one kernel
  bool is_joined = false;
  // Measured in another run (KnowReadings): of chosen kernels, perhaps not all of an operator.
  bool of_another_run = false;
};

// What has to be measured for all of it, as ncu calls it.
std::vector<std::string_view> MetricsOfWork();
// A metric that a field of MeasuredWork is made of.
bool TellsOfWork(std::string_view metric);

// A profiler of counters runs kernels one at a time in their order and does not say which launch a
// reading belongs to. The k-th reading is of the k-th launch where there are as many of both
// (HTA's rule); else nothing is joined. Counters of another run (KnowReadings) go before these.
MeasuredKernels JoinKernelCounters(const Trace& trace);

}  // namespace ranktap::collector

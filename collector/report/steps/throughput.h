// How fast a model is trained: samples a second, arithmetic a second, and how much of what the
// devices can do that is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "collector/facts/framework/parallel_sizes.h"
#include "collector/report/options.h"
#include "collector/report/table.h"

namespace ranktap::collector {

struct Throughput {
  size_t steps = 0;           // that were timed
  int64_t step_ns = 0;        // their mean, data loading and all
  int64_t micro_batches = 0;  // forwards of the root module in a step, the median
  int64_t batch = 0;          // samples of one of them on this rank; 0: not known
  std::string batch_known;    // why, or why not, as a sentence's end
  ParallelSizes parallel;
  // In one step on this rank, by FlopRule::kCounter, operators outside of modules included.
  int64_t forward_flops = 0, backward_flops = 0, recompute_flops = 0;
  std::string types;      // of what is multiplied, as torch.profiler writes them
  double peak_flops = 0;  // FLOP/s of this rank; 0: not known
  std::string peak_known;

  int64_t model_flops() const { return forward_flops + backward_flops; }
  // For the whole job: batch * micro-batches * data parallel size / step; nullopt: not known.
  std::optional<double> SamplesPerSecond() const;
  // Model FLOP/s utilisation, 0 to 1: (forward + backward) / step / peak. nullopt: not known.
  std::optional<double> Mfu() const;
  // Hardware FLOP/s utilisation: with what was recomputed.
  std::optional<double> Hfu() const;
};

// "MFU is undecided: no operator tells the FLOPs of ..."; empty: FLOPs and peak hold
// (claims/claim.h). A peak that is given is not checked.
std::string WhyNoUtilisation(const Run& run, const ReportOptions& options);

// On one rank. `step`: of this one instead of the steps of SelectTimedSteps. Heeds
// options.peak_flops, batch_size and data_parallel. nullopt: there are no steps.
std::optional<Throughput> MeasureThroughput(const Run& run, const Trace& trace,
                                            const ReportOptions& options,
                                            std::optional<int64_t> step = {});

}  // namespace ranktap::collector

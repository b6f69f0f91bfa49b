// What a person may ask of an analysis beyond its name. Each analysis says which of these it heeds.
#pragma once

#include <cstdint>
#include <string>

namespace ranktap::collector {

struct AnalysisOptions {
  // Answer as Holistic Trace Analysis does, with its selection and its definitions.
  bool hta_compat = false;
  // ops: the arguments of torch's key_averages() and table().
  bool by_shape = false;
  int by_stack = 0;  // frames
  bool by_module = false;
  std::string sort_by;
  // patterns: operators whose name contains this; device operations in a sequence at least.
  std::string operator_name;
  int shortest_pattern = 3;
  // memory-over-time: after every so many operators; 0: at moments of equal distance.
  int sample_rate = 0;
  // throughput, modules: what a trace does not know. 0: not given.
  double peak_flops = 0;      // FLOP/s of one rank
  int64_t batch_size = 0;     // samples in a micro-batch of one rank
  int64_t data_parallel = 0;  // ranks that train on different data
};

}  // namespace ranktap::collector

// One forward of a model, layer by layer, as torchstat and other summaries of models print it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/framework/torchstat_rule.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// With all that ran in it, the modules called in it included; of the first forward of its root
// that was recorded operator by operator.
struct Layer {
  std::string name;  // Root.path
  std::string type;  // its class; empty: nothing described the model
  int64_t calls = 0;
  // In its first call: the first tensor that an operator in it took, and the tensor that the last
  // one returned. Empty: not known.
  Dims input, output;
  int64_t output_bytes = 0;  // 0: not known
  // The module's own and its children's, each once; nullopt: nothing described the model.
  std::optional<int64_t> parameters;
  int64_t flops = 0;              // FlopRule::kCounter
  int64_t read = 0, written = 0;  // bytes: CountBytes
  int64_t uncounted = 0;          // operators whose bytes are not known
  TorchStatCount torchstat;       // of the layers without children in it; sizes in bytes
  int64_t host_ns = 0, gpu_ns = 0;
};

// Parents before children, in the order in which they first ran. A trace without operators or
// modules has none.
std::vector<Layer> DescribeLayers(const Trace& trace);

}  // namespace ranktap::collector

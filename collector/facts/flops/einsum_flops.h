// torch.einsum by DeepSpeed's rule, from the products that ran inside. A part of op_flops.h.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "collector/facts/flops/flop_count.h"
#include "collector/facts/flops/op_inputs.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// DeepSpeed takes numpy.einsum_path's "Optimized FLOP count": the size of each product's index
// space, twice where an index is summed over. torch.einsum makes the same products, as bmm or,
// without a sum, as mul; of one operand it sums or moves.
class EinsumCounts {
 public:
  explicit EinsumCounts(const Trace& trace)
      : trace_(trace), around_(trace.operators.size(), kNone) {}

  // In the order of the rows. False: `row` is in no einsum.
  bool Take(uint32_t row);
  void AddTo(std::vector<FlopCount>* counts) const;

 private:
  struct Einsum {
    int64_t operand = 0;  // elements of the only one; 0: there are several
    int64_t flops = 0;
  };
  OpInputs InputsOf(uint32_t row) const;

  const Trace& trace_;
  std::vector<uint32_t> around_;  // by row: the einsum it is in
  std::map<uint32_t, Einsum> einsums_;
};

}  // namespace ranktap::collector

// The registry of formulas: bytes that an operator has to move, from the shapes and types of what
// it takes and returns. A lower bound of what it moves: each input is read once, each output
// written once, whatever a cache holds.
#pragma once

#include <cstdint>
#include <vector>

#include "collector/facts/operators/byte_count.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// Views and what only asks or allocates move nothing. Tensors without dimensions count nothing:
// they travel as a kernel's arguments. An operator reads only what is there of an input that is
// expanded (stride 0). It reads what the index names of one that is indexed (embedding, gather),
// each row at most once where rows cannot be told apart. A tensor that is two inputs is read twice.
ByteCount CountBytes(const OpSignature& op);

// For each operator of the trace its own share: nothing where an operator around it is counted.
// `list_element_bytes`: by row, what is known of lists beside the texts; empty: nothing.
std::vector<ByteCount> CountBytes(const Trace& trace,
                                  const std::vector<int64_t>& list_element_bytes = {});

}  // namespace ranktap::collector

// The registry of formulas: bytes that an operator has to move, from the shapes and types of what
// it takes and returns. A lower bound of what it moves: each input is read once, each output
// written once, whatever a cache holds.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// How much is known of an operator's bytes.
enum class BytesKnown : uint8_t {
  kNoFormula,  // of this operator
  kNoShapes,   // of its inputs are recorded
  kNoType,     // or one of a size that is not known, of a tensor that it moves
  kAtLeast,    // the output's size is not recorded and does not follow from what is
  kExactly,
};

struct ByteCount {
  BytesKnown known = BytesKnown::kNoFormula;
  int64_t read = 0, written = 0;
  int64_t total() const { return read + written; }
  bool is_counted() const { return known >= BytesKnown::kAtLeast; }
};

// The texts that Operators keeps, by the names it has for them.
struct OpSignature {
  std::string_view name, shapes, strides, types, values, output_shapes, output_types;
  // Bytes of an element of a list's tensors, whose type no text names; 0: not known.
  int64_t list_element_bytes = 0;
};

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

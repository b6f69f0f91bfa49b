// The questions to the byte formulas, and their answers.
#pragma once

#include <cstdint>
#include <string_view>

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

}  // namespace ranktap::collector

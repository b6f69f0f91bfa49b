// Inputs and outputs of an operator as sizes in memory. A part of op_bytes.h, but for
// TensorBytes().
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/operators/byte_count.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// The tensors that went into an operator, or came out, in bytes, by Dictionary::String of their
// shapes and types. Lists count nothing; no more than 2^50.
int64_t TensorBytes(const Trace& trace, uint32_t shapes, uint32_t types);

// Counts what is read and written. An input of an unknown type makes the whole unknown.
class OpTensors {
 public:
  explicit OpTensors(const OpSignature& op);

  const OpInputs& in() const { return in_; }
  // True of a tensor with dimensions and of a list of tensors.
  bool Has(size_t index) const { return Elements(index) > 0 || IsList(index); }
  bool IsList(size_t index) const;
  std::string_view TypeOf(size_t index) const;
  // All tensors of a list together; 0: none, or none with dimensions.
  int64_t Elements(size_t index) const;
  // 0: not known.
  int64_t ElementBytes(size_t index) const;
  // Broadcast of the first `arity` inputs; a list counts as its tensors side by side.
  int64_t BroadcastElements(size_t arity) const;
  // What arithmetic of the first `arity` inputs, from `first` on, returns: floats before integers,
  // tensors with dimensions before those without, then the larger.
  int64_t PromotedBytes(size_t first, size_t arity) const;

  void Read(size_t index);
  void ReadElements(size_t index, int64_t elements);
  void Write(size_t index);  // as much as this input is
  void WriteElements(int64_t elements, int64_t element_bytes);
  void WriteOutputs() { outputs_wanted_ = true; }  // only the record knows how large

  // An output that the record names, and that is not in place, counts for what was written.
  ByteCount Counted(bool in_place) const;

 private:
  // Bytes of what the record says came out.
  std::optional<int64_t> RecordedOutputs() const;
  int64_t Unique(size_t index) const;

  const OpSignature& op_;
  OpInputs in_, types_, strides_, out_, out_types_;
  ByteCount count_{.known = BytesKnown::kExactly};
  bool outputs_wanted_ = false, type_unknown_ = false, output_type_unknown_ = false;
  bool shapes_missing_ = false;
};

}  // namespace ranktap::collector

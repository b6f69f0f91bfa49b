// The values of operators, as the agent wrote them (proto/operator_values.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// One input or output.
struct TraceValue {
  enum class Kind : uint8_t {
    kNone,
    kTensor,
    kInteger,
    kReal,
    kFlag,
    kText,
    kDevice,
    kList,
    kOther
  };
  Kind kind = Kind::kNone;
  // As PyTorch's tagKind(): "Int", "Device", "Object"; of a tensor its element's: "float". Empty:
  // not known.
  std::string type;
  int64_t integer = 0;  // also of a flag
  double real = 0;
  std::string text;                     // also of a device: "cuda:0"
  std::vector<TraceValue> elements;     // of a list or tuple
  std::vector<int64_t> sizes, strides;  // of a tensor, here to `text`, the device
  uint64_t tensor = 0, storage = 0;     // numbers among those of the nodes; storage 0: none
  int64_t offset = 0;
  uint64_t elements_count = 0, element_bytes = 0;
};

// The inputs or the outputs of one operator. Tensors and storages are addresses yet.
struct RecordedValues {
  int64_t time = 0;  // when it began (inputs) or ended
  uint16_t writer = 0;
  bool are_outputs = false;
  bool knows_overload = false;
  uint32_t thread = 0;  // PyTorch's number
  uint64_t record_function = 0;
  std::string overload;
  std::vector<TraceValue> values;  // of kOther `integer` is the tag
};

// By time, as they were written; what is cut off or not understood is left out.
std::vector<RecordedValues> ReadOperatorValues(const Trace& trace);

}  // namespace ranktap::collector

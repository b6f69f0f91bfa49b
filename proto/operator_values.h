// An operator's inputs and outputs, value by value, as `run --tensors=full` records it: a mark
// called kValuesMark in kOperatorDomain whose payload is bytes (kBytesSchema), at the operator's
// start for its inputs, always, and at its end for its outputs where it has some. Values longer
// than a part go on in further marks.
//
// A part: ValuesHead, then in the first one the overload's name, then the values one after the
// other. All numbers are little-endian and not aligned. Only codes may be added.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ranktap::proto {

// RANKTAP_TENSORS.
enum class TensorDetail : uint8_t { kNone = 0, kShared = 1, kFull = 2 };

inline constexpr std::string_view kValuesMark = "values";
// A text mark, once a window for each operator that was seen in it: lines of JSON, [name, overload,
// schema] as PyTorch's dispatcher writes it.
inline constexpr std::string_view kSchemasMark = "schemas";

inline constexpr uint8_t kValuesVersion = 1;
inline constexpr uint8_t kValuesAreOutputs = 1, kValuesGoOn = 2;  // ValuesHead::flags
inline constexpr size_t kMostValuePartBytes = 4096;               // with its head

struct ValuesHead {
  uint8_t version;
  uint8_t flags;
  uint8_t overload_bytes;  // 255: PyTorch does not say
  uint8_t backward;        // unused
  uint32_t thread;         // PyTorch's number of the thread; 0: not known
  uint64_t record;         // at::RecordFunction's handle; 0: not known
  uint32_t count;          // of the values: those of lists are not counted
  uint32_t part;           // from 0
};
static_assert(sizeof(ValuesHead) == 24);
inline constexpr uint8_t kNoOverload = 255;

// A value begins with its code, a byte.
enum class ValueCode : uint8_t {
  kNone = 'N',
  // u16 dtype, u8 dims, i8 device type, i8 device index, u8 has storage, u64 tensor, u64 memory,
  // i64 offset, dims sizes and dims strides of i64. A tensor without storage has no more than
  // these.
  kTensor = 'T',
  kUndefined = 'U',  // u64 tensor
  kInteger = 'I',    // i64
  kReal = 'R',       // f64
  kFlag = 'B',       // u8
  kText = 'S',       // u32 bytes, of which at most kMostTextBytes follow
  kDevice = 'D',     // i8 type, i8 index
  kList = 'L',       // u32 elements, at most kMostListValues, then these
  kTuple = 'P',      // as kList
  kOther = 'O',      // u32 tag of the c10::IValue
};
inline constexpr uint32_t kMostTextBytes = 1024, kMostListValues = 4096;

}  // namespace ranktap::proto

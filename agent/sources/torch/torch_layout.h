// The places where PyTorch keeps an operator's inputs: the offsets in at::RecordFunction,
// c10::IValue and c10::TensorImpl, which differ between versions and are no interface. They are
// found, not known: a few operators are called with inputs whose sizes, types and values are known,
// and the memory is searched for these. An offset that is not found in one way only leaves `found`
// false.
// Runs on: threads that hold the interpreter's lock.  May not: read memory that may not be there
// but through the kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "agent/sources/torch/torch_value_layout.h"

namespace ranktap::agent {

inline constexpr size_t kRecordFunctionBytes = 640;  // looked through; more than it has
inline constexpr size_t kIValueBytes = 16;           // a payload of 8, then the tag
inline constexpr size_t kInlineSizes = 5;            // c10::SizesAndStrides: more are elsewhere

struct TorchLayout {
  bool found = false;
  size_t inputs = 0;    // of the pointer in at::RecordFunction; the count follows
  size_t sequence = 0;  // in at::RecordFunction
  size_t sizes = 0;     // in c10::TensorImpl: the count, then the sizes or a pointer to them
  size_t dtype = 0;     // in c10::TensorImpl, 2 bytes: the number of a c10::ScalarType
  size_t list = 0;      // in c10::detail::ListImpl: the pointers to begin and end
  uint32_t none = 0, tensor = 0, number = 0, real = 0, flag = 0, generic_list = 0;  // tags

  bool finds_tensors = false;  // what follows is found
  size_t outputs = 0;          // in at::RecordFunction: the pointers to begin and end
  size_t handle = 0;           // in at::RecordFunction; 0: not found
  size_t storage = 0;          // in c10::TensorImpl: of the pointer to a c10::StorageImpl, or null
  size_t data = 0;             // in c10::StorageImpl: of the pointer to its memory
  ValueLayout values;
};

// Parts of the tensors that the probe made: three c10::TensorImpl, the c10::StorageImpl of the last
// two and where their memory is. The last one borrows its memory from an object of Python's.
struct ProbedTensors {
  std::array<uint64_t, 2> outputs{};  // of the two convolutions
  uint64_t own = 0, own_storage = 0, own_data = 0;
  uint64_t borrowed = 0, borrowed_storage = 0, borrowed_data = 0;
};

// The calls of agent/sources/torch/python/operators.py, as our observer kept them.
struct LayoutProbe {
  // x [3, 5, 17, 19] of float, w [7, 5, 3, 3] of float, of double, of long, of bfloat16, and
  // [2, 1, 3, 1, 2, 7]: c10::TensorImpl.
  std::array<uint64_t, 6> tensors{};
  // at::RecordFunction as aten::convolution(x, w, None, [2, 3], [4, 5], [1, 1], False, [0, 0], 1)
  // began, twice, and the sequence number of either's node.
  std::array<std::array<std::byte, kRecordFunctionBytes>, 2> functions{};
  std::array<uint64_t, 2> sequences{};
  size_t seen = 0;
  // Found while the operator runs, as its inputs go with it: the place of the inputs, and them.
  size_t inputs = 0;
  std::array<std::byte, 9 * kIValueBytes> convolution{};
  uint64_t list_begin = 0;                            // place in the list of [2, 3]
  std::array<std::byte, 3 * kIValueBytes> dropout{};  // aten::dropout(x, 0.5, False)
  // How either convolution ended: the bytes at each offset that could hold a list of one. `begun`:
  // how many operators had begun as it began.
  using Ends = std::array<std::array<std::byte, kIValueBytes>, kRecordFunctionBytes / 8>;
  std::array<Ends, 2> ends{};
  std::array<uint64_t, 2> begun{};
  size_t ended = 0;
  uint64_t operators = 0;
  ProbedTensors made;
  ValueProbe values;
};

// At the start of an operator of the probe.
void ProbeConvolution(const void* function, LayoutProbe& probe);
void ProbeConvolutionsEnd(const void* function, LayoutProbe& probe);
void ProbeDropout(const void* function, LayoutProbe& probe);
TorchLayout FindLayout(const LayoutProbe& probe);

// False: not all of it is mapped.
bool ReadSafely(uint64_t address, std::span<std::byte> into);

}  // namespace ranktap::agent

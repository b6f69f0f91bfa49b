// The offsets that `run --tensors=full` needs beyond torch_layout.h: strides, the offset in the
// storage, devices, texts. Found as that is: each in one way only, or not at all. Runs on: threads
// that hold the interpreter's lock. May not: read memory that may not be there but through the
// kernel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ranktap::agent {

struct TorchLayout;

// 0: not found, for each.
struct ValueLayout {
  bool has_strides = false;  // after the sizes, as c10::SizesAndStrides has them
  size_t offset = 0;         // in c10::TensorImpl: of the tensor in its storage
  size_t device = 0;         // in c10::TensorImpl: type, index, 1
  uint32_t text = 0;         // tag of a string
  size_t characters = 0;     // of a std::string in what a string's payload points to
  uint32_t device_tag = 0;   // tag of a device; its payload is type and index
  uint32_t tuple = 0;        // tag of a tuple; its elements are where a list's vector is
};

// The values that the probe saw.
struct ValueProbe {
  std::array<std::byte, 2 * 16> gelu{};     // inputs of aten::gelu(x, approximate="tanh")
  std::array<std::byte, 6 * 16> empty{};    // of aten::empty on device "meta"
  size_t characters = 0;                    // found while it runs, as its text goes with it
  uint64_t far_view = 0, farther_view = 0;  // c10::TensorImpl at offsets 37 and 61
  uint64_t turned = 0;                      // sizes 7, 2, 3 with strides 1, 21, 7
  uint64_t on_meta = 0;                     // of one element, on "meta"
};

// At the start of an operator of the probe; `inputs` is the place of its inputs in `function`.
void ProbeValues(const char* name, const void* function, size_t inputs, ValueProbe& probe);
ValueLayout FindValueLayout(const ValueProbe& probe, const TorchLayout& layout);
// "strides, texts": what was not found; empty: all was.
std::string NotFoundOf(const ValueLayout& layout);

}  // namespace ranktap::agent

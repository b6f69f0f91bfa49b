// The kinds of kernels that their names tell: which arithmetic a matrix product uses, whether a
// kernel only moves data.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

enum class ProductMath : uint8_t {
  kNone,    // no matrix product and no convolution
  kUnsaid,  // a product whose name does not say on which cores it runs
  kTensor,  // on tensor cores
  kFloat,   // 32-bit floats without them
  kHalf,    // 16-bit floats without them
};

struct KernelKind {
  ProductMath math = ProductMath::kNone;
  bool is_convolution = false;
  bool is_tf32 = false;
  // Elements that its loads are aligned to, where its name says so, and with which tensor cores are
  // fed at full speed (16 bytes); 0: unsaid.
  uint8_t align = 0, full_align = 0;
  bool only_moves = false;         // copies, casts, transposes, concatenates
  bool changes_layout = false;     // between NCHW and NHWC, for a convolution
  bool is_of_tensor_list = false;  // one kernel for many tensors (foreach and fused optimizers)
};

// `name` is readable (ReadableKernelName).
KernelKind KindOfKernel(std::string_view name);

// Compute capability; 0: not known.
struct DeviceArchitecture {
  uint32_t major = 0, minor = 0;
  bool has_tf32() const { return major >= 8; }
  bool has_tensor_cores() const { return major >= 7; }
};

// The kernels of a trace by their names. Not safe from several threads.
class KernelKinds {
 public:
  explicit KernelKinds(const Trace& trace);
  const KernelKind& Of(uint32_t name) const { return kinds_[name < kinds_.size() ? name : 0]; }
  // As the process said, else what kernels are named after (ampere_sgemm).
  DeviceArchitecture ArchitectureOf(uint32_t device) const;

 private:
  const Trace& trace_;
  std::vector<KernelKind> kinds_;  // by Dictionary::String
  DeviceArchitecture by_names_;
};

}  // namespace ranktap::collector

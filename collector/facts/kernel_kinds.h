// The kinds of kernels that their names tell: which arithmetic a matrix product uses, whether a
// kernel only moves data.
#pragma once

#include <cstdint>
#include <map>
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

// The kernels of a trace by their names.
class KernelKinds {
 public:
  explicit KernelKinds(const Trace& trace);
  const KernelKind& Of(uint32_t name) const { return kinds_[name < kinds_.size() ? name : 0]; }
  // Of none there is nothing to look for among all work.
  bool has_products() const { return has_products_; }
  bool has_layout_changes() const { return has_layout_changes_; }
  // As the process said, else what kernels are named after (ampere_sgemm).
  DeviceArchitecture ArchitectureOf(uint32_t device) const;

 private:
  std::vector<KernelKind> kinds_;  // by Dictionary::String
  bool has_products_ = false, has_layout_changes_ = false;
  std::map<uint32_t, DeviceArchitecture> said_;  // by device
  DeviceArchitecture by_names_;
};
// Worked out once and kept in the trace's memo.
const KernelKinds& KernelKindsOf(const Trace& trace);

}  // namespace ranktap::collector

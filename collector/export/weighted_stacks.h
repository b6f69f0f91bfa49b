// The program's time as stacks with weights, of which flame graphs are made.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "collector/export/export_options.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

struct StackFrame {
  std::string function, file;
  uint32_t line = 0;  // 0: not known
  auto operator<=>(const StackFrame&) const = default;
};

// Each is a sum of its own: GPU time is not in the time of the call that launched it.
enum class StackWeight : uint8_t {
  kCount,     // how many pieces of work, calls and operators
  kCall,      // ns in CUDA calls that launched nothing
  kOperator,  // ns in an operator and in none inside it
  kGpu,       // ns of device work, below what launched it
};
inline constexpr size_t kStackWeights = 4;

class WeightedStacks {
 public:
  using Frames = std::vector<uint32_t>;  // indices into frames(), the outermost first
  using Weights = std::array<int64_t, kStackWeights>;

  uint32_t IndexOf(StackFrame frame);
  void Add(const Frames& frames, StackWeight weight, int64_t ns);

  const std::vector<StackFrame>& frames() const { return frames_; }
  const std::map<Frames, Weights>& stacks() const { return stacks_; }
  int64_t total(StackWeight weight) const { return totals_[static_cast<size_t>(weight)]; }

 private:
  std::vector<StackFrame> frames_;
  std::map<StackFrame, uint32_t> indices_;
  std::map<Frames, Weights> stacks_;
  Weights totals_{};
};

// Device work hangs below the host's stack of the call that launched it where one was recorded,
// else below the operators around that call. The outermost frame is "rank N": its index is
// returned. Reads Trace::symbols.
uint32_t AddStacks(const Trace& trace, const ExportOptions& options, WeightedStacks* to);

}  // namespace ranktap::collector

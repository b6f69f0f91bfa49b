// The program's time as stacks with weights, of which flame graphs are made.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "collector/export/export_options.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

struct WeightedFrame {
  std::string function, file;
  uint32_t line = 0;  // 0: not known
  auto operator<=>(const WeightedFrame&) const = default;
};

// Each is a sum of its own: GPU time is not in the time of the call that launched it.
enum class StackWeight : uint8_t {
  kCount,       // how many pieces of work, calls, operators and looks at threads
  kCall,        // ns in CUDA calls that launched nothing
  kOperator,    // ns in an operator and in none inside it
  kGpu,         // ns of device work, below what launched it
  kSampled,     // ns in which a Python thread was found there
  kSampledCpu,  // the part of that in which a CPU ran it
};
inline constexpr size_t kStackWeights = 6;

// Of samples, where they are asked for.
struct StackLabels {
  uint32_t thread = 0;  // 0: not of a sample
  std::optional<int64_t> step = {};
  std::string_view phase = {};  // "forward", "between the forward and the backward pass"
  auto operator<=>(const StackLabels&) const = default;
};

class WeightedStacks {
 public:
  using Frames = std::vector<uint32_t>;  // indices into frames(), the outermost first
  using Weights = std::array<int64_t, kStackWeights>;
  struct Key {
    Frames frames;
    StackLabels labels = {};
    auto operator<=>(const Key&) const = default;
  };

  enum class Labels { kNone, kOfSamples };
  explicit WeightedStacks(Labels labels = Labels::kNone) : labels_(labels) {}
  bool has_labels() const { return labels_ == Labels::kOfSamples; }

  uint32_t IndexOf(WeightedFrame frame);
  // A piece of work, a call or an operator.
  void Add(const Frames& frames, StackWeight weight, int64_t ns);
  void Add(Frames frames, const StackLabels& labels, const Weights& weights);

  const std::vector<WeightedFrame>& frames() const { return frames_; }
  const std::map<Key, Weights>& stacks() const { return stacks_; }
  int64_t total(StackWeight weight) const { return totals_[static_cast<size_t>(weight)]; }

 private:
  std::vector<WeightedFrame> frames_;
  std::map<WeightedFrame, uint32_t> indices_;
  std::map<Key, Weights> stacks_;
  Weights totals_{};
  const Labels labels_;
};

// Device work hangs below the host's stack of the call that launched it where one was recorded,
// else below the operators around that call. Python threads are where samples found them. The
// outermost frame is "rank N": its index is returned. Reads Trace::symbols.
uint32_t AddStacks(const Trace& trace, const ExportOptions& options, WeightedStacks* to);

}  // namespace ranktap::collector

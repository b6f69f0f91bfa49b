#include "collector/export/sampled_stacks.h"

#include <algorithm>
#include <unordered_map>

#include "collector/export/json_text.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/samples/sample_pieces.h"
#include "collector/facts/samples/thread_purposes.h"

namespace ranktap::collector {
namespace {

using Frames = WeightedStacks::Frames;

class SampledStacks {
 public:
  SampledStacks(const Trace& trace, uint32_t root, WeightedStacks* to)
      : trace_(trace),
        samples_(SamplesOf(trace)),
        purposes_(PurposesOf(trace)),
        root_(root),
        to_(to) {}

  void Add(const ExportOptions& options) {
    if (samples_.all().empty()) return;
    if (to_->has_labels()) {
      const SamplePieces pieces(trace_);
      pieces.ForEach(options.from, options.to, [this](const SamplePiece& piece) {
        AddPiece(piece, {.thread = piece.sample->thread, .step = piece.step, .phase = piece.phase});
      });
      return;
    }
    for (const HostSample& sample : samples_.all()) {
      const SamplePiece whole{.sample = &sample,
                              .start = std::max(sample.start, options.from),
                              .end = std::min(sample.end, options.to)};
      if (whole.start < whole.end) AddPiece(whole, {});
    }
  }

 private:
  void AddPiece(const SamplePiece& piece, const StackLabels& labels) {
    WeightedStacks::Weights weights{};
    weights[static_cast<size_t>(StackWeight::kCount)] = piece.PartOf(piece.sample->looks);
    weights[static_cast<size_t>(StackWeight::kSampled)] = piece.length();
    weights[static_cast<size_t>(StackWeight::kSampledCpu)] = piece.CpuNs();
    to_->Add(FramesOf(*piece.sample), labels, weights);
  }

  Frames FramesOf(const HostSample& sample) {
    Frames frames;
    for (uint32_t at = sample.frame; at != 0;) {
      const SampledFrame* const frame = samples_.Frame(at);
      if (frame == nullptr) break;
      const auto [found, is_new] = indices_.try_emplace(at, 0);
      if (is_new) {
        found->second =
            to_->IndexOf({SanitizedName(frame->function), SanitizedName(frame->file), frame->line});
      }
      frames.push_back(found->second);
      at = frame->parent;
    }
    if (frames.empty()) frames.push_back(Named("(not read)"));
    frames.push_back(Named(purposes_.NameOfThread(sample.thread)));
    frames.push_back(root_);
    std::ranges::reverse(frames);
    return frames;
  }
  uint32_t Named(std::string name) {
    return to_->IndexOf({.function = std::move(name), .file = {}});
  }

  const Trace& trace_;
  const HostSamples& samples_;
  const ThreadPurposes& purposes_;
  const uint32_t root_;
  WeightedStacks* to_;
  std::unordered_map<uint32_t, uint32_t> indices_;  // by frame
};

}  // namespace

void AddSampledStacks(const Trace& trace, const ExportOptions& options, uint32_t root,
                      WeightedStacks* to) {
  SampledStacks(trace, root, to).Add(options);
}

}  // namespace ranktap::collector

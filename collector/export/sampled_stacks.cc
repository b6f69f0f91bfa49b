#include "collector/export/sampled_stacks.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "collector/export/json_text.h"
#include "collector/facts/samples/host_phases.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/samples/thread_purposes.h"
#include "collector/facts/steps.h"

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
    if (to_->has_labels()) phases_.emplace(trace_);
    for (const HostSample& sample : samples_.all()) {
      const int64_t start = std::max(sample.start, options.from);
      const int64_t end = std::min(sample.end, options.to);
      if (start < end) AddPart(sample, start, end);
    }
  }

 private:
  void AddPart(const HostSample& sample, int64_t start, int64_t end) {
    StackLabels labels;
    if (!to_->has_labels()) return AddPiece(sample, labels, start, end);
    labels.thread = sample.thread;
    const bool is_main = sample.thread == samples_.main_thread();
    ForEachStep(start, end, [&](std::optional<int64_t> step, int64_t from, int64_t to) {
      labels.step = step;
      if (!is_main) return AddPiece(sample, labels, from, to);
      phases_->Split(
          from, to,
          [&](std::optional<Cause> cause, std::string_view gap, int64_t begin, int64_t until) {
            labels.phase = cause ? NameOf(*cause) : gap;
            AddPiece(sample, labels, begin, until);
          });
    });
  }

  // visit(number, start, end) for each piece; nullopt: in no step.
  template <typename Visit>
  void ForEachStep(int64_t start, int64_t end, Visit&& visit) const {
    const std::vector<Step>& steps = DetectSteps(trace_).list;
    auto step = std::ranges::upper_bound(steps, start, {}, &Step::end);
    while (start < end) {
      const bool is_in = step != steps.end() && step->start <= start;
      const int64_t next = step == steps.end() ? end : is_in ? step->end : step->start;
      const int64_t until = std::min(end, next);
      visit(is_in ? std::optional(step->number) : std::nullopt, start, until);
      if (is_in) ++step;
      start = until;
    }
  }

  void AddPiece(const HostSample& sample, const StackLabels& labels, int64_t start, int64_t end) {
    const double part =
        static_cast<double>(end - start) / static_cast<double>(sample.end - sample.start);
    const auto of = [part](auto whole) { return std::llround(static_cast<double>(whole) * part); };
    WeightedStacks::Weights weights{};
    weights[static_cast<size_t>(StackWeight::kCount)] = of(sample.looks);
    weights[static_cast<size_t>(StackWeight::kSampled)] = end - start;
    weights[static_cast<size_t>(StackWeight::kSampledCpu)] =
        std::min<int64_t>(of(sample.cpu_ns), end - start);
    to_->Add(FramesOf(sample), labels, weights);
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
  std::optional<HostPhases> phases_;                // where there are labels
  std::unordered_map<uint32_t, uint32_t> indices_;  // by frame
};

}  // namespace

void AddSampledStacks(const Trace& trace, const ExportOptions& options, uint32_t root,
                      WeightedStacks* to) {
  SampledStacks(trace, root, to).Add(options);
}

}  // namespace ranktap::collector

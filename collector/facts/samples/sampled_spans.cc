#include "collector/facts/samples/sampled_spans.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace ranktap::collector {
namespace {

class SpansOfThread {
 public:
  SpansOfThread(const HostSamples& samples, std::vector<SampledSpan>* to)
      : samples_(samples), to_(to) {}

  void Add(const HostSample& sample) {
    if (sample.start >= sample.end || sample.start < seen_until_) return;
    std::vector<uint32_t> chain;
    for (uint32_t at = sample.frame; at != 0;) {
      const SampledFrame* const frame = samples_.Frame(at);
      if (frame == nullptr) break;
      chain.push_back(at);
      at = frame->parent;
    }
    std::ranges::reverse(chain);
    const bool goes_on = sample.start == seen_until_;
    size_t same = 0;
    while (goes_on && same < std::min(chain.size(), open_.size()) &&
           open_[same].frame == chain[same]) {
      ++same;
    }
    Close(same);
    for (size_t i = same; i < chain.size(); ++i) {
      open_.push_back({.thread = sample.thread,
                       .frame = chain[i],
                       .depth = static_cast<uint32_t>(i),
                       .start = sample.start});
    }
    for (SampledSpan& span : open_) span.cpu_ns += sample.cpu_ns;
    seen_until_ = sample.end;
  }

  void Close(size_t kept) {
    for (; open_.size() > kept; open_.pop_back()) {
      open_.back().end = seen_until_;
      to_->push_back(open_.back());
    }
  }

 private:
  const HostSamples& samples_;
  std::vector<SampledSpan>* to_;
  std::vector<SampledSpan> open_;
  int64_t seen_until_ = INT64_MIN;
};

}  // namespace

std::vector<SampledSpan> SpansOf(const HostSamples& samples) {
  std::vector<const HostSample*> sorted;
  for (const HostSample& sample : samples.all()) sorted.push_back(&sample);
  std::ranges::stable_sort(sorted, {}, &HostSample::start);
  std::vector<SampledSpan> spans;
  std::map<uint32_t, SpansOfThread> threads;
  for (const HostSample* const sample : sorted) {
    threads.try_emplace(sample->thread, samples, &spans).first->second.Add(*sample);
  }
  for (auto& [thread, open] : threads) open.Close(0);
  std::ranges::sort(spans, {}, [](const SampledSpan& span) {
    return std::tuple(span.thread, span.start, span.depth);
  });
  return spans;
}

}  // namespace ranktap::collector

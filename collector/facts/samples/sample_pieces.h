// Samples cut where a step or a part of a step begins or ends: each piece lies in one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include "collector/facts/samples/host_phases.h"
#include "collector/facts/samples/host_samples.h"
#include "collector/facts/steps.h"

namespace ranktap::collector {

struct SamplePiece {
  const HostSample* sample = nullptr;
  int64_t start = 0, end = 0;
  std::optional<int64_t> step;  // its number
  std::string_view phase;       // of the main thread: NameOf(Cause), or PassGaps::At

  int64_t length() const { return end - start; }
  // Its part of what was counted of the sample.
  int64_t PartOf(int64_t whole) const {
    return std::llround(static_cast<double>(whole) * static_cast<double>(length()) /
                        static_cast<double>(sample->end - sample->start));
  }
  int64_t CpuNs() const { return std::min(PartOf(sample->cpu_ns), length()); }
  int64_t QueuedNs() const { return std::min(PartOf(sample->queued_ns), length() - CpuNs()); }
};

class SamplePieces {
 public:
  explicit SamplePieces(const Trace& trace)
      : samples_(SamplesOf(trace)), steps_(DetectSteps(trace).list), phases_(trace) {}

  // visit(piece) for all that lies in [from, to), in the order of HostSamples::all.
  template <typename Visit>
  void ForEach(int64_t from, int64_t to, Visit&& visit) const {
    for (const HostSample& sample : samples_.all()) {
      SamplePiece piece{.sample = &sample, .start = std::max(sample.start, from)};
      CutAtSteps(&piece, std::min(sample.end, to), visit);
    }
  }

 private:
  template <typename Visit>
  void CutAtSteps(SamplePiece* piece, int64_t end, Visit&& visit) const {
    auto step = std::ranges::upper_bound(steps_, piece->start, {}, &Step::end);
    while (piece->start < end) {
      const int64_t start = piece->start;
      const bool is_in = step != steps_.end() && step->start <= start;
      const int64_t next = step == steps_.end() ? end : is_in ? step->end : step->start;
      const int64_t until = std::min(end, next);
      piece->step = is_in ? std::optional<int64_t>(step->number) : std::nullopt;
      CutAtPhases(*piece, until, visit);
      if (is_in) ++step;
      piece->start = until;
    }
  }
  template <typename Visit>
  void CutAtPhases(SamplePiece piece, int64_t until, Visit&& visit) const {
    if (piece.sample->thread != samples_.main_thread()) {
      piece.end = until;
      return visit(piece);
    }
    phases_.Split(
        piece.start, until,
        [&](std::optional<Cause> cause, std::string_view gap, int64_t start, int64_t end) {
          piece.phase = cause ? NameOf(*cause) : gap;
          piece.start = start;
          piece.end = end;
          visit(piece);
        });
  }

  const HostSamples& samples_;
  const std::vector<Step>& steps_;
  HostPhases phases_;
};

}  // namespace ranktap::collector

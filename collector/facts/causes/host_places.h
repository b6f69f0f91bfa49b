// Where in a step a host ran what no phase explains, by the passes before and after. Each step of
// 40 ms, and its places:
//
//   forward 5..10, backward 10..20, optimizer 20..22, log.write 22..40 in a range "log"
//
//   0..5     5 ms   after the optimizer and before the next forward pass: of the step before
//   22..40  18 ms   the same; the range "log" has 18 of the 23
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/facts/causes/explained_time.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct RankWaterfall;

class PassGaps {
 public:
  explicit PassGaps(const Trace& trace);
  // "between the forward and the backward pass" for a time in no pass; empty where the trace has
  // none. Before the first pass and after the last it is what mostly is before and after such ones.
  std::string_view At(int64_t time) const;

 private:
  enum Pass : uint8_t { kNoPass, kForward, kBackward, kOptimizer };
  using Neighbours = std::array<Pass, 4>;  // by pass
  static Pass PassOf(Cause cause);

  bool has_forward_ = false;  // without modules nobody knows when one begins
  Neighbours usual_before_{}, usual_after_{};
  std::vector<Explained::Piece> passes_;  // by start
};

struct HostPlace {
  std::string where;   // PassGaps::At
  std::string inside;  // "range log", "aten::mul_": what has more than half of it; maybe empty
  int64_t ns = 0;      // per counted step
  std::string line;    // "train.py:97 (main)" (samples/host_samples.h), by the same rule
};

// The most time first: of a rank that used no device. `waterfall`: its own, maybe with other steps
// counted.
std::vector<HostPlace> PlacesOfHost(const Run& run, uint32_t trace, const RankWaterfall& waterfall);
// One list for each trace, the most time first: of ranks that used no device.
std::vector<std::vector<HostPlace>> PlacesOfHosts(const Run& run);

}  // namespace ranktap::collector

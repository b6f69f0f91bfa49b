// Each step in parts that exclude each other and add up to it. A part of run_diff.h.
//
//   waterfall, of a step of 40 ms     parts
//     forward    5 ms                 forward     5 ms
//     backward  10 ms                 backward   10 ms
//     host      25 ms          ->     host, after the optimizer and before the next forward pass
//                                     18 ms; host, between the forward and the backward pass 7 ms
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "collector/facts/causes/cause.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The place of Cause::kHost: between which passes the host was, or in which; empty: not known.
using StepPart = std::pair<Cause, std::string_view>;

struct PartOfStep {
  StepPart part;
  size_t step = 0;  // of the waterfall's list
  int64_t ns = 0;
};

// By trace, in the order of time. A part may come several times in a step.
std::vector<std::vector<PartOfStep>> PartsOfSteps(const Run& run);

}  // namespace ranktap::collector

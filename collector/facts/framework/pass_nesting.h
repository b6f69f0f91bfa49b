// The nesting of a training step's passes, so that the time of each is its own.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "collector/facts/numbers/interval_set.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// All sets are merged.
struct PassNesting {
  // Root forwards and backward passes inside of an optimizer's step: of its closure.
  std::vector<Interval> in_optimizers;
  // By writer: backward passes and optimizer's steps inside of a root's forward, and what the agent
  // does there between two steps.
  std::unordered_map<uint16_t, std::vector<Interval>> in_forwards;
  // Names of modules that had an optimizer's step inside: Lightning's manual optimization.
  std::unordered_set<uint32_t> by_hand;

  // The part of [start, end) in the root forwards of a writer.
  std::vector<Interval> InForward(uint16_t writer, int64_t start, int64_t end) const;
  // The same where the module is one of `by_hand`, else nothing: a gradient that a model takes to
  // compute its output is of its forward.
  std::vector<Interval> InModule(uint32_t name, uint16_t writer, int64_t start, int64_t end) const;
};

// Worked out once and kept in the trace's memo.
const PassNesting& NestedPasses(const Trace& trace);

}  // namespace ranktap::collector

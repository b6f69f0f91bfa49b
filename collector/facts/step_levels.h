// Steps that are not alike, so that their mean is the length of none:
//
//   40 40 40 40 40 4 4 4 4 4 ...        a change of level: steps 0 to 4 take 40, steps from 5 on 4
//   6 6 6 6 200 6 6 6 6 6 ...           a few long ones, which have a large part of all time
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ranktap::collector {

struct StepList;

struct StepLevels {
  enum Kind : uint8_t { kAlike, kChange, kFewLong };
  Kind kind = kAlike;
  // Of the steps after the warm-up, as positions in StepList::list.
  std::vector<size_t> some;            // before the change, or the long ones
  std::vector<size_t> others;          // after it, or the rest
  int64_t some_ns = 0, others_ns = 0;  // medians
  double share = 0;                    // what `some` have of the time of all
};

// `recorded`: by step, whether our recording made it slower; such a step is never a long one.
StepLevels LevelsOf(const StepList& steps, const std::vector<bool>& recorded);

}  // namespace ranktap::collector

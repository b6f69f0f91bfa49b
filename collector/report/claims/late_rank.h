// What is said of the rank that the others wait for (claim.h). Verdict, insights and stragglers ask
// here.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/causes/stragglers.h"
#include "collector/facts/samples/late_line.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// "the other ranks wait for rank 1, which spends 3.000 ms a step more than they do waiting for
// data"; "the ranks wait for each other in turn, most for rank 1"; "ranks wait for each other;
// which of them is late is undecided: ...". Needs stragglers.
std::string DescribeLateRank(const Run& run);

// "3.000 ms a step more than they do in the forward pass (most in Net.experts)". Needs its cause.
std::string DescribeExcessOf(const Run& run, const Straggler& straggler, std::string_view others);

// ", at train.py:97 (main)" or ", which spends 3.000 ms a step more than they do at ..." where the
// straggler has no cause: the line that has more than half of what they wait; empty: none has.
std::string DescribeLateLine(const Run& run, const Straggler& straggler);
// The line alone.
LateLine LineOfLateRank(const Run& run, const Straggler& straggler);
// The module, node of the backward pass or kernel that has more than half of a late rank's excess;
// empty: none has.
std::string PlaceOfExcess(const Run& run, const Straggler& straggler);

// The time a step that the others wait for stragglers: in collectives, and at most what the
// waterfall has one of them wait while nothing computes and no host works. For that of one, or of
// all where they take turns.
int64_t ExposedWaitFor(const Run& run, const std::vector<Straggler>& stragglers);

}  // namespace ranktap::collector

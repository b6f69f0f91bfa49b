// Calls of a model in a program that only infers: a call is a forward, and its step lasts until the
// next.
#pragma once

#include <cstdint>
#include <string>

#include "collector/facts/flops/op_inputs.h"
#include "collector/facts/numbers/duration_distribution.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct StepList;

struct ModelCalls {
  size_t made = 0;             // with the warm-up
  DurationDistribution calls;  // after the warm-up
  // Where they are of two lengths, as a prompt and the tokens after it: those that take longer, and
  // the others. Else empty.
  DurationDistribution long_calls, short_calls;
  Dims long_input, short_input;  // of the first tensor of one whose operators are recorded
  int64_t pause_ns = 0;          // the mean between two
  int64_t all_ns = 0;            // calls and pauses
};
ModelCalls CallsOf(const Trace& trace, const StepList& steps);

// "a call takes 2.000 ms (p50), 3.000 ms (p99)"; "5 calls on [512, 64] take 13.87 ms (p50), the
// others on [1, 64] 72.63 us (p50), 95.00 us (p99)". Needs calls.
std::string DescribeLengths(const ModelCalls& of);

// "The model is called 30 times: a call takes 2.000 ms (p50), 3.000 ms (p99), and 8.000 ms pass
// between two, 80.0 % of the time." Of the rank with the most calls. Empty: it is no such program.
std::string DescribeCalls(const Run& run);

}  // namespace ranktap::collector

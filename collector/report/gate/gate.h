// The gate: are these runs worse than those by more than a limit? Three answers, because a
// comparison of few runs often cannot tell.
//
//   run_figures.h   a number a run for each thing: the run is the unit, not the step
//   welch.h         the interval in which the true change lies, from the spread between runs
//   Judge()         regression where the whole interval is beyond the limit, none where it is all
//                   within it, cannot tell between
//
// Changes are ratios, so the test is of logarithms. All limits together are wrong in 1 % of
// comparisons at most (Bonferroni), on each side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/file/result.h"
#include "collector/report/gate/run_figures.h"
#include "collector/report/table.h"

namespace ranktap::collector {

inline constexpr double kGateConfidence = 0.99, kGatePower = 0.95;

// "step>3%", "memory-peak>5%", "kernels:gemm*>10%": what may grow by so much.
struct GateLimit {
  std::string text;
  std::optional<SampleKind> kind;  // nullopt: memory-peak
  std::string pattern;             // as a shell's; empty for step and memory-peak
  double percent = 0;
};
std::optional<GateLimit> ParseGateLimit(std::string_view text);
// "step, memory-peak, causes:NAME, ...": what a limit may be about, for messages and help.
std::string WhatALimitNames();

// What the limit is about, in this run; fails with why the run has no such figure.
Result<double> FigureOf(const RunFigures& run, const GateLimit& limit);
// What makes two lists, neither empty, no two samples of one thing; empty: nothing does.
std::string WhyNotComparable(const std::vector<RunFigures>& base,
                             const std::vector<RunFigures>& runs);

enum class GateAnswer : uint8_t { kNoRegression, kRegression, kCannotTell };
std::string_view NameOf(GateAnswer answer);  // "no regression"

struct GateRow {
  GateLimit limit;
  GateAnswer answer = GateAnswer::kCannotTell;
  std::optional<double> before, after;      // ns a step, or bytes; means of the runs
  std::optional<double> change, low, high;  // percent; the interval at the corrected confidence
  std::optional<double> spread;             // percent, of one run to the next
  std::string why;                          // a sentence
};

struct GateResult {
  GateAnswer answer = GateAnswer::kNoRegression;
  std::vector<GateRow> rows;  // in the order of the limits
  std::string sentence;       // what the answer is, and which thing changed: the judge's
  size_t base_runs = 0, runs = 0;
  std::vector<std::string> notes;  // settings that differ
};

// Neither list is empty, and there is a limit.
GateResult Judge(const std::vector<RunFigures>& base, const std::vector<RunFigures>& runs,
                 const std::vector<GateLimit>& limits);

Table TabulateGate(const GateResult& gate);

}  // namespace ranktap::collector

// Two runs side by side:
//
//   run_samples.h   each run's steps by cause, host's place, kernel, module, range and operator
//   run_diff.cc     a row for each of these, with its change and whether that is significant
//   DescribeDiff    the sentence: how much longer a step takes, and what that is made of
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/report/steps/run_samples.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

inline constexpr size_t kLeastSteps = 5;  // of a run, for a test of significance
inline constexpr double kSignificant = 0.01;

struct DiffRow {
  SampleKey key;
  double before = 0, after = 0;  // ns a step
  double before_calls = 0, after_calls = 0;
  size_t fewest_steps = 0;        // that it was recorded in, of the run that has fewer
  std::optional<double> p_value;  // nullopt: not tested
  std::string ids;                // "17 to 36; 17 to 36" of names that share the row
  double change() const { return after - before; }
  bool is_new() const { return before_calls == 0; }
  bool is_gone() const { return after_calls == 0; }
  // Of a line that samples met in one run alone: they may have missed it by chance in the other.
  bool is_maybe_missed() const {
    return key.first == SampleKind::kLine && !(p_value && *p_value < kSignificant);
  }
};

struct RunDiff {
  std::vector<DiffRow> rows;  // the step first
  bool has_steps = true;      // both runs have
  bool of_runs = false;       // p values are of whole runs (report/gate), not of steps
  std::string undecided;      // "before, ...": why nothing may be said; empty: it may
};

// The step, what is new or gone, the rest; the largest difference first. `step`: its ns.
void SortDiffRows(double step, std::vector<DiffRow>* rows);

// Why nothing may be said of what the run's time went to; empty: it may.
std::string WhyUndecided(const Run& run);
std::string DescribeDiff(const RunDiff& diff);

}  // namespace ranktap::collector

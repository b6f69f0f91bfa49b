// What a gate keeps of a run: one number a thing, because the unit of the test is the run. Steps of
// one run share their placement, hash seed and neighbours. A baseline is a file of these.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collector/report/steps/run_samples.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

inline constexpr int kBaselineFormat = 1;

struct RunFigure {
  double ns = 0;     // a step of a rank, the mean after the warm-up
  double calls = 0;  // a step of a rank
};

struct RunFigures {
  std::string path;
  std::string id;         // of run.json; empty where another tool wrote the file
  std::string undecided;  // why the judge says nothing of what its time went to; empty: it may
  size_t steps = 0;       // of all ranks, after the warm-up; 0: none were found
  // Where one of these differs the runs are not compared: devices, ranks, levels.
  std::map<std::string, std::string> must_agree;
  // What may be the very change: the command, versions, variables, batch, dtype, and what a person
  // noted (run --metadata).
  std::map<std::string, std::string> settings;
  std::map<SampleKey, RunFigure> by_key;
  std::optional<double> peak_bytes;
  std::optional<double> flops_per_step;  // forward and backward of the first rank
};

RunFigures FiguresOf(const Run& run);

// A baseline: the figures of each of its runs, so that their spread is kept.
struct Baseline {
  std::string name;
  std::vector<RunFigures> runs;
};
std::string WriteBaseline(const Baseline& baseline);
// nullopt: the text is no baseline, or one of a newer format.
std::optional<Baseline> ParseBaseline(std::string_view text);

}  // namespace ranktap::collector

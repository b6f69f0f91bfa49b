// The part of a run that a person asks for, and what is known of it: --job, --ranks, --steps,
// --window, --flops-of, --compiled, --roofs, --ncu.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/cli/known_arithmetic.h"
#include "collector/report/table.h"
#include "collector/terminal/arguments.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct RunSelection {
  std::string ranks, steps, window;
  int64_t job = 0;  // from 1; 0: all
  KnownArithmeticOptions known;
  std::string roofs;  // a file of `ranktap calibrate`; empty: that of each host
  std::vector<std::string> ncu;
};

void AddSelectionOptions(Arguments* app, RunSelection* selection);

// Leaves what is asked for; what is to be said about it goes to `notes`. False, after a complaint:
// it asks for what is not there.
bool SelectOfRun(const RunSelection& selection, Run* run, std::vector<std::string>* notes);

// "GPU kernels, all ranks" becomes "GPU kernels, rank 1" where that alone is asked for.
void NameTheRanks(const RunSelection& selection, Table* table);

// "FROM:TO" after the run's first event; either may be missing. Nanoseconds of CLOCK_REALTIME.
struct TimeWindow {
  int64_t from, to;
};
std::optional<TimeWindow> ParseWindow(const std::string& text, int64_t first_event);
// The sentence about one that is none.
std::string NoWindow(const std::string& text);

}  // namespace ranktap::collector

// The analyses: pure functions from a run to a table. They neither print nor open files.
#pragma once

#include <span>
#include <string_view>

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct Analysis {
  std::string_view name;      // as in `ranktap report RUN NAME`
  std::string_view question;  // one line for --help
  Table (*run)(const Run& run) = nullptr;
  // Heeds options; exactly one of the two is set, unless it compares.
  Table (*run_with)(const Run& run, const AnalysisOptions& options) = nullptr;
  bool needs_symbols = false;  // reads Trace::symbols
  // Of two runs; set alone, or null.
  Table (*compare)(const Run& before, const Run& after) = nullptr;

  Table operator()(const Run& of, const AnalysisOptions& options = {}) const {
    if (compare != nullptr) {
      return {.name = std::string(name), .title = "", .notes = {"compares two runs: name both"}};
    }
    return run_with != nullptr ? run_with(of, options) : run(of);
  }
};

// In the order in which `ranktap report` lists them (registry.cc).
std::span<const Analysis> AllAnalyses();
// nullptr: there is none of this name.
const Analysis* FindAnalysis(std::string_view name);

}  // namespace ranktap::collector

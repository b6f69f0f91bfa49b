// The offline page: a run's tables and pictures in one HTML file that needs no network.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// The program's stacks, which an exporter adds up (export/weighted_stacks.h).
struct PageFlames {
  struct Stack {
    std::vector<uint32_t> frames;    // into `frames`, the outermost first
    std::array<int64_t, 6> weights;  // StackWeight
  };
  std::vector<std::string> frames;
  std::vector<Stack> stacks;
};

// How tables show long names, no two of them alike (report/text/name_cut.h).
using ShortenNames = std::function<std::vector<std::string>(const std::vector<std::string>&)>;

struct PageContent {
  ReportOptions options;
  std::vector<std::string> notes;  // sentences about what of the run is selected
  PageFlames flames;
  // Links of a page that is served: the list of runs, and what opens this one in Perfetto.
  std::string runs_link = {}, perfetto_link = {};
  std::vector<std::string> inputs = {};  // what was opened, for the commands that the page shows
  std::string place = {};                // the run's path from the root
  ShortenNames shorten = {};
};

// All of it, as a file is written. Uses Trace::symbols where they are there.
std::string FormatPage(const Run& run, const PageContent& content);

// A page about two runs: the table of `diff`, and both runs' waterfalls and key figures.
std::string FormatDiffPage(const Run& before, const Run& after,
                           const std::vector<std::string>& notes, const ShortenNames& shorten = {});

}  // namespace ranktap::collector

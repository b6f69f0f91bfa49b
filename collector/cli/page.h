// Makes the offline page of an opened run.
#pragma once

#include <string>
#include <vector>

#include "collector/report/options.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// Where a page that is served leads to; empty: nowhere.
struct PageLinks {
  std::string runs, perfetto;
};

// Looks names up for the run's stacks first, in the folders of `symbols` too. `inputs`: the paths
// that were opened, as the page's commands say them.
std::string MakePage(const ReportOptions& options, const std::vector<std::string>& symbols,
                     const std::vector<std::string>& notes, const std::vector<std::string>& inputs,
                     Run* run, const PageLinks& links = {});
std::string MakeDiffPage(const Run& before, const Run& after,
                         const std::vector<std::string>& notes);

}  // namespace ranktap::collector

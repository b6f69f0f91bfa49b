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

// Looks names up for the run's stacks first, in the folders of `symbols` too.
std::string MakePage(const ReportOptions& options, const std::vector<std::string>& symbols,
                     const std::vector<std::string>& notes, Run* run, const PageLinks& links = {});

}  // namespace ranktap::collector

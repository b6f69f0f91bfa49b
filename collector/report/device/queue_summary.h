#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// How many launched pieces of work wait on each stream? +1 at the start of a launch, -1 at the
// start of its work; statistics over these moments. --hta-compat: get_queue_length_summary.
Table TabulateQueue(const Run& run, const AnalysisOptions& options);

}  // namespace ranktap::collector

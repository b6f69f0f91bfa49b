#pragma once

#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// HTA's get_gpu_user_annotation_breakdown with all names kept apart: by rank and annotation, how
// long the work on a stream took that ran for it, from its first kernel to its last.
Table TabulateHtaAnnotations(const Run& run);

}  // namespace ranktap::collector

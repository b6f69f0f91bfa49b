// Kineto's profiler of CUPTI ranges: counters of the device for each kernel, as events of category
// cuda_profiler_range. Kineto writes them no longer; files that have them stay.
#pragma once

#include "collector/import/kineto/kineto_event.h"
#include "collector/import/kineto/kineto_names.h"
#include "collector/trace/model.h"

namespace ranktap::collector {

// A row of Trace::kernel_counters. False: no member of the event's arguments is a number.
bool AddKernelCounters(const KinetoEvent& event, KinetoNames* names, Trace* trace);

// By start, once all are there.
void SortKernelCounters(Trace* trace);

}  // namespace ranktap::collector

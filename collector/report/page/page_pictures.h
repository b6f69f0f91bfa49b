// What the page draws and no table holds: lanes over time; causes, kernels, collectives and modules
// by rank and step. A part of page.h.
#pragma once

#include "collector/file/json.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// {"start_ns", "end_ns": after the run's first event, "causes": [name], "ranks": [{"rank", "start",
// "bins": "a12c", ...}]}: each rank's time in equal bins, as letters of the cause that takes most
// of a bin, each with how many bins it holds where that is more than one.
Json PageLanes(const Run& run);

// Steps of the waterfall: {"causes": [name], "ranks": [{"rank", "steps", "start_us", "total_us",
// "warm_up": [row], "causes": {cause: [us]}}]}
Json PageSteps(const Run& run);

// ns by rank and bucket of steps of what takes most time: {"buckets", "steps_per_bucket",
// "kernels": [{"name", "us": [by trace, of each by bucket]}], "collectives": [{"group", "type",
// "bytes", "us"}]: time of all members, "modules": [{"name", "us"}]: of forwards on the host}
Json PageTimes(const Run& run);

// What ran under its name, the longest pieces of each rank: {"names": [name], "left_out",
// "ranks": [{"trace", "rows": [{"kind", "label", "names": [number], "starts": [ns after the one
// before], "ns"}]}]}
Json PageNames(const Run& run);

// The instant that all times count from. 0: nothing has a time.
int64_t FirstEvent(const Run& run);

}  // namespace ranktap::collector

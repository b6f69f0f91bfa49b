// Opens what a person names on a command line as a Run: our own run or trace, or files of other
// tools.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/file/result.h"
#include "collector/trace/load/run_reader.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// "rank3.json", "trace_rank_12.json.gz", "worker-5_rank-7...": the number after the last "rank".
std::optional<uint32_t> RankInName(const std::string& path);

// The traces in one file, ours or another tool's.
Result<std::vector<Trace>> LoadFile(const std::string& path);

// One path: a run directory, a trace, a file of another tool or a directory of such files (searched
// one level deep; memory snapshots and timelines count only where nothing else is in it). Several:
// each a file. Ranks come from the files, else from names like "rank3.json"; the times of all ranks
// count from the same moment. Files that could not be read are in Run::problems; fails when nothing
// could be. `wants`: which of a run directory's traces; empty: all. `leave_out`: of our own traces.
Result<Run> OpenRun(const std::vector<std::string>& paths, const WantsTrace& wants = {},
                    const LeaveOut& leave_out = {});

}  // namespace ranktap::collector

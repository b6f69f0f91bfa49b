// The traces of a directory that belong together: a run may hold several jobs, and a mean over
// ranks of two jobs is of neither.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collector/trace/run.h"

namespace ranktap::collector {

struct Job {
  std::string name;              // the launcher's id, or the script
  std::vector<uint32_t> traces;  // by index; those of processes that its processes started, too
};

// By start. It tells apart captures alone, by what their processes said: the launcher's job id and
// the world size; without an id the script, and a rank that comes again when its first process was
// gone. A process without a rank is a job of its own where it worked on a device or trained and no
// traced process started it. One or none: nothing to tell apart.
std::vector<Job> FindJobs(const Run& run);

// "2 jobs are in this run: 1: train.py, 8 ranks; 2: eval.py, 1 rank; --job 1 asks about one of
// them"; empty for one job.
std::string DescribeJobs(const Run& run);

// Leaves the traces of job `number`, from 1. False, and nothing is taken, where there is none.
bool KeepJob(int64_t number, Run* run);

}  // namespace ranktap::collector

// What kept a rank's main thread from its work, in intervals such as its counted steps: no CPU, the
// interpreter's lock, storage, pages that were not in memory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collector/facts/numbers/interval_set.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct Taken {
  int64_t ns = 0;
  int64_t count = 0;  // bytes of storage, major faults
  std::string line;   // "train.py:97 (main)": that has more than half of `ns`; empty: none has
};

struct TakenTime {
  int64_t sampled_ns = 0;  // 0: nobody looked
  Taken queued;            // ready to run, and no CPU ran it
  Taken gil;
  std::string gil_holder;  // the line of another thread that ran in more than half of that
  Taken reads;             // waited for at places that read from storage
  // "/data/a.bin", that a look met it in for more than half of that time, or "files in /data"
  std::string read_files;
  Taken faults;  // and at those that met pages that were not in memory
  // Of the process: time in which its control groups were throttled, and at most queued.ns.
  int64_t throttled_ns = 0, throttled_periods = 0;
  // CPUs that its threads ran on, in the mean; 0: not known.
  double used_cpus = 0;
};

// `intervals` are in order and disjoint.
TakenTime TakenIn(const Trace& trace, std::span<const Interval> intervals);

// Of each rank in its counted steps. Worked out once and kept in the run's memo.
const std::vector<TakenTime>& TakenOfRanks(const Run& run);

// Of the ranks that share a rank's machine and CPUs, itself among them.
struct SharedCpus {
  size_t ranks = 0, cpus = 0;  // 0 CPUs: not known
  double used = 0;             // TakenTime::used_cpus
  // The ranks use them up: what waits for one waits for the job's own threads.
  bool AreUsedUp() const {
    constexpr double kNearlyAll = 0.85;
    return cpus > 0 && used >= kNearlyAll * static_cast<double>(cpus);
  }
};
SharedCpus CpusAround(const Run& run, uint32_t trace);

}  // namespace ranktap::collector

// The calls that each rank of a job entered, by process group: as a dump of PyTorch's Flight
// Recorder tells them, or as the agent saw gloo's collectives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/trace/run.h"

namespace ranktap::collector {

// Texts live as long as the traces.
struct JobCall {
  uint32_t group = 0;  // index into JobCalls::groups
  uint64_t number = 0;
  std::string_view function, in_sizes, out_sizes, in_types, out_types, stack;
  std::optional<uint32_t> peer;  // the rank at the other end of a send or recv
  int64_t entered_ns = 0;        // CLOCK_REALTIME
  uint64_t bytes = 0;            // where there are no sizes; 0: not known
  bool is_send = false, is_recv = false;
  bool is_open = false;

  bool is_collective() const { return !is_send && !is_recv; }
};

struct JobGroup {
  std::string name, description, backend;
  std::vector<uint32_t> ranks;  // ascending
  // False: only the ranks that entered a call of it are known.
  bool has_all_ranks = false;
};

struct JobCalls {
  std::vector<JobGroup> groups;
  std::map<uint32_t, std::vector<JobCall>> ranks;  // by rank, in the order of entry
  uint32_t world = 0;                              // ranks of the job; 0: not known

  bool Knows(uint32_t rank) const { return ranks.contains(rank); }
};

// Worked out once and kept in the run's memo. A rank with several files counts by the one that has
// stacks; a file that is cut off does not count.
const JobCalls& CallsOfJob(const Run& run);

}  // namespace ranktap::collector

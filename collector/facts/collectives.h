// Finds the kernels of all ranks that are one and the same collective.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collector/facts/collective_types.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct CollectiveMember {
  uint32_t trace = 0;  // index into Run::traces
  uint32_t work = 0;   // index into DeviceTimeline(); kNone: it ran on the host
  int64_t start = 0, end = 0;
  int64_t length() const { return end - start; }
};

struct CollectiveName {
  std::string type;   // "allreduce", "allgather", "reducescatter", "broadcast", "sendrecv", ...
  std::string group;  // its process group, or "stream N" where nothing names one
};

// One collective as it ran. With all members traced, wait and transfer follow without clocks: all
// end together, so the shortest member (the last to arrive) transferred all the time, and
// wait_r = length_r - shortest.
struct CollectiveRun {
  std::shared_ptr<const CollectiveName> name;  // one for all calls that are alike: there are many
  uint32_t group_size = 0;                     // 0: not known
  int64_t bytes = 0;                           // the full buffer, as nccl-tests count; 0: not known
  std::vector<CollectiveMember> members;       // by trace
  const std::string& type() const { return name->type; }
  const std::string& group() const { return name->group; }
  // Members of different groups may carry the same name: only equal groups are matched.
  int64_t shortest() const;
  // Index into members of the last one to arrive.
  size_t last_arriver() const;
  bool complete() const { return group_size != 0 && members.size() == group_size; }
};

// By group and number of the call in it (torch's sequence number, else the order on the stream),
// oldest first. Point-to-point calls and kernels that only one traced rank ran have one member.
// Worked out once and kept in the run's memo.
const std::vector<CollectiveRun>& MatchCollectives(const Run& run);

// Which of them a trace's work is. A list of those alone: one for all work took 8 times as much.
class CollectiveOfWork {
 public:
  bool empty() const { return calls_.empty(); }
  // `work`: index into DeviceTimeline(). The index of its collective, or kNone.
  uint32_t operator[](uint32_t work) const {
    const auto at = std::ranges::lower_bound(calls_, std::pair(work, uint32_t{0}));
    return at == calls_.end() || at->first != work ? kNone : at->second;
  }

  void Reserve(size_t calls) { calls_.reserve(calls); }
  void Add(uint32_t work, uint32_t collective) { calls_.emplace_back(work, collective); }
  void Sort() {
    if (!std::ranges::is_sorted(calls_)) std::ranges::sort(calls_);
    calls_.shrink_to_fit();
  }

 private:
  std::vector<std::pair<uint32_t, uint32_t>> calls_;  // by work
};
// By trace.
const std::vector<CollectiveOfWork>& CollectivesByWork(const Run& run);

// As MatchCollectives, of those that ran on the host (gloo), by the order of the calls in their
// group. torch.profiler's files have them only where gloo has one group: its events do not name it.
const std::vector<CollectiveRun>& MatchHostCollectives(const Run& run);

// Those on devices; of a run that has none, those on the host.
const std::vector<CollectiveRun>& MatchDeviceOrHostCollectives(const Run& run);

}  // namespace ranktap::collector

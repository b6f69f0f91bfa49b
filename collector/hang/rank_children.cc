#include "collector/hang/rank_children.h"

#include <fmt/core.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <utility>

#include "collector/stacks/proc_files.h"

namespace ranktap::collector {
namespace {

constexpr int kYoungChildLooks = 5;  // it may run another program, or get its name, yet
constexpr size_t kMostAlive = 512;   // each is a descriptor
constexpr size_t kMostEnded = 16;    // of one rank
constexpr uint64_t kToldNs = 600'000'000'000;

std::string LinkOf(pid_t pid) { return ReadProcLink(fmt::format("/proc/{}/exe", pid)); }

// PyTorch names a worker's main thread so.
bool HasWorkersName(pid_t pid) {
  return ReadProcFile(fmt::format("/proc/{}/comm", pid)).value_or("").starts_with("pt_data_worker");
}

}  // namespace

bool EndedChild::is_bad() const {
  if (!end.wait_status || *end.wait_status == 0) return false;
  return !WIFSIGNALED(*end.wait_status) || WTERMSIG(*end.wait_status) != SIGTERM;
}

void RankChildren::Look(pid_t pid, pid_t rank, const EndOrder& order) {
  const auto known = alive_.find(pid);
  if (known == alive_.end() ? alive_.size() >= kMostAlive : known->second.looks >= kYoungChildLooks)
    return;
  const std::string program = LinkOf(pid);
  if (program.empty()) return;  // it has ended
  Child& child = alive_[pid];
  if (child.looks++ == 0) {
    child.rank = rank;
    child.handle = OpenPidfd(pid);
    order.Watch(pid, child.handle);
  }
  child.is_ours = program == LinkOf(rank);
  child.is_loaders = HasWorkersName(pid);
}

bool RankChildren::TakeEnd(pid_t pid, ProcessEnd end, std::optional<bool> kills_grew) {
  const auto found = alive_.find(pid);
  if (found == alive_.end()) return false;
  const Child child = std::move(found->second);
  alive_.erase(found);
  if (!child.is_ours) return true;
  end.wait_status = EndStatusOf(pid, child.handle);
  if (end.wait_status == SIGKILL) end.was_out_of_memory = kills_grew;
  std::deque<EndedChild>& ended = ended_[child.rank];
  ended.push_back({.pid = pid, .is_loaders = child.is_loaders || HasWorkersName(pid), .end = end});
  if (ended.size() > kMostEnded) ended.pop_front();
  return true;
}

void RankChildren::Forget(pid_t rank) {
  std::erase_if(alive_, [rank](const auto& entry) { return entry.second.rank == rank; });
  ended_.erase(rank);
}

std::vector<EndedChild> RankChildren::EndedOf(pid_t rank, uint64_t now_ns) const {
  std::vector<EndedChild> told;
  const auto found = ended_.find(rank);
  if (found == ended_.end()) return told;
  for (EndedChild child : found->second) {
    child.age_ns = now_ns - child.end.seen_ns;
    if (child.age_ns <= kToldNs) told.push_back(child);
  }
  return told;
}

pid_t RankChildren::RankOf(pid_t child) const {
  const auto found = alive_.find(child);
  return found == alive_.end() ? 0 : found->second.rank;
}

}  // namespace ranktap::collector

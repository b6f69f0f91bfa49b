// The ranks of the jobs that a collector serves, on this machine: also those in which no agent has
// started. By the environment of their processes, or, where torch.multiprocessing has made them and
// it says nothing, by the order in which they were. Reads /proc; nothing runs in them for it.
// Thread-compatible.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/hang/process_ends.h"
#include "collector/hang/rank_children.h"

namespace ranktap::collector {

struct RankProcess {
  pid_t pid = 0;
  uint32_t rank = 0;
  uint32_t world = 0;  // 0: its environment does not say
  std::string job;     // equal for the ranks of one job, and for no other's
  uid_t user = 0;
  std::string error_file;  // see RecordedError
  FileDescriptor handle;   // a pidfd; not valid before Linux 5.3
  // The kernel's count of processes that it killed for want of memory in this one's control group:
  // the file, and its number when the rank was found.
  std::string kills_file;
  std::optional<uint64_t> kills;
};

struct EndedRank {
  uint32_t rank = 0;
  std::string job;
  pid_t pid = 0;
  ProcessEnd end;
  std::string last_place;  // where its main thread was when it was last looked at; empty: not known
  uint64_t last_age_ns = 0;         // how long before it was seen to have ended
  std::string exception;            // see RecordedError
  std::optional<EndedChild> child;  // of its own, that ended badly shortly before it
};

class RankProcesses {
 public:
  // Of the processes that have RANKTAP_SOCKET=`socket` in their environment. `own_only`: of those
  // that are this process's user's; a standing collector of root reads no other's memory.
  RankProcesses(std::string socket, bool own_only)
      : socket_(std::move(socket)), own_only_(own_only) {}

  // Looks for processes that came or went. To be called about once a second: a young process is
  // read again, since a launcher's child has its rank only from its exec on.
  void Update();

  // Only that: takes note of the ranks that have ended, and of their children.
  void DropEnded();
  // Readable while there are some.
  int ends() const { return order_.handle(); }

  const std::map<pid_t, RankProcess>& ranks() const { return ranks_; }
  // Since the last call, in the order in which they ended.
  std::vector<EndedRank> TakeEnded() { return std::exchange(ended_, {}); }
  std::vector<EndedChild> EndedChildrenOf(pid_t rank) const;

 private:
  struct Candidate {
    int looks = 0;
    bool is_ours = false, has_python = false;
    pid_t parent = 0;
    uid_t user = 0;
    std::optional<uint32_t> rank;
    uint32_t world = 0;
    std::string local_rank, job, error_file;
    int group_looks = 0;
    bool has_group = false;  // threads of a process group, where its environment has no rank of it
  };
  // Processes that one parent started, in that order; alive or not.
  using Siblings = std::map<std::pair<uint64_t, pid_t>, bool>;
  void Read(pid_t pid, Candidate* candidate) const;
  bool IsLauncher(pid_t pid) const;
  bool IsBelowItsRank(const Candidate& candidate) const;
  bool IsBelowAGroup(const Candidate& candidate) const;
  void FindSpawned();
  pid_t RankAbove(const Candidate& candidate) const;
  void TakeEnd(pid_t pid, uint64_t now_ns);

  EndOrder order_;  // the handles that it watches are below
  std::string socket_;
  bool own_only_;
  std::map<pid_t, Candidate> candidates_;
  std::map<pid_t, Siblings> spawned_;  // by their parent
  std::map<pid_t, RankProcess> ranks_;
  std::vector<EndedRank> ended_;
  RankChildren children_;
};

// The file that counts what the OOM killer ended in the control group of a process whose
// /proc/PID/cgroup is `groups`, and its number. Empty: there is none that can be read.
std::string OomKillsFile(const std::string& groups, const std::string& root = "/sys/fs/cgroup");
std::optional<uint64_t> OomKillsIn(const std::string& file);

}  // namespace ranktap::collector

// The processes that ranks have started to work for them, a DataLoader's workers foremost, and how
// those ended: a rank that waits for one of them says nothing of it. Thread-compatible.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/hang/process_ends.h"

namespace ranktap::collector {

struct EndedChild {
  pid_t pid = 0;
  bool is_loaders = false;  // a DataLoader's worker
  ProcessEnd end;
  uint64_t age_ns = 0;  // when it is told of

  // By itself or by somebody else: loaders and pools end theirs by exit status 0 and by SIGTERM.
  bool is_bad() const;
};

class RankChildren {
 public:
  // A live process below a rank. One that does not run the rank's program does not count: what it
  // is started for, it mostly tells.
  void Look(pid_t child, pid_t rank, const EndOrder& order);

  // `end` lacks the status. False: it is none of them.
  bool TakeEnd(pid_t child, ProcessEnd end, std::optional<bool> kills_grew);
  void Forget(pid_t rank);

  // Those of the last minutes that are worth telling of one rank, with their ages, the first first.
  std::vector<EndedChild> EndedOf(pid_t rank, uint64_t now_ns) const;
  // 0: it is none of them.
  pid_t RankOf(pid_t child) const;

 private:
  struct Child {
    pid_t rank = 0;
    int looks = 0;
    bool is_ours = false, is_loaders = false;
    FileDescriptor handle;
  };
  std::map<pid_t, Child> alive_;
  std::map<pid_t, std::deque<EndedChild>> ended_;  // by the rank
};

}  // namespace ranktap::collector

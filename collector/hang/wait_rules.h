// Who waits for whom in one job, from looks at its ranks from outside. A rank waits while its main
// thread stands in a collective and does not run, or is in a CUDA call while nothing ends on its
// device: there it may spin. A rank that is elsewhere meanwhile is waited for.
// Pure: no clock, no /proc. Thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collector/hang/rank_look.h"
#include "collector/hang/rank_processes.h"

namespace ranktap::collector {

struct WaitLimits {
  uint64_t waits_after_ns = 0;  // 0: by the job's own waits, and at least 20 s
  uint64_t hang_after_ns = 600'000'000'000;
};

enum class WaitGrade : uint8_t { kNone, kWaits, kHang };

enum class WaitCause : uint8_t {
  kNone,
  kEnded,         // a rank has ended
  kStopped,       // a rank is stopped by a signal
  kStuck,         // a rank stands still elsewhere
  kMoves,         // a rank is busy elsewhere
  kOtherCall,     // ranks stand in different calls
  kAllEntered,    // all stand in the same call
  kDevices,       // all wait, some of them for their devices
  kOtherNode,     // all of this machine wait, and the job has more
  kDebugged,      // a debugger holds a rank
  kAsksTerminal,  // a rank reads what a person types
  kUnreadable,    // a rank's stack is not known
};
const char* NameOf(WaitCause cause);

struct WaitVerdict {
  WaitGrade grade = WaitGrade::kNone;
  WaitCause cause = WaitCause::kNone;
  std::vector<uint32_t> waiting, awaited;
  uint64_t waited_ns = 0;
  std::string sentence, advice;
};

class WaitRules {
 public:
  explicit WaitRules(const WaitLimits& limits) : limits_(limits) {}

  // `now_ns` of a clock that stands still while the machine, or the whole job, does.
  void Take(RankLook look, uint64_t now_ns);
  // In the order of the ends.
  void TakeEnded(const EndedRank& ended);
  void SetWorld(uint32_t ranks) { world_ = ranks; }

  // Some rank has not run for a while, so that the next looks should be full ones.
  bool IsSuspicious(uint64_t now_ns) const;
  bool AllStopped() const;
  WaitVerdict Judge(uint64_t now_ns) const;
  // The last full look at each rank.
  std::vector<const RankLook*> Looks() const;
  size_t size() const { return ranks_.size(); }

 private:
  struct Rank {
    RankLook glance, full;
    uint64_t first_ns = 0, glanced_ns = 0;
    std::optional<uint64_t> blocked_since;  // its main thread has not run since
    uint64_t same_since = 0, worked_ns = 0;
    int same_looks = 0;   // full ones, with the same stack
    int still_looks = 0;  // those without work since; where it computes, those in which it ran
    double cpu = 0;       // share of the main thread
    double wanted = 0;    // the same, and what it waited for a processor
    bool functions_move = false;
  };
  void Compare(const RankLook& look, uint64_t now_ns, Rank* rank) const;
  bool IsWaiting(const Rank& rank) const;
  bool IsMovingInACall(const Rank& rank) const;
  WaitCause CauseOf(const Rank& awaited, uint64_t now_ns, uint64_t limit_ns) const;
  uint64_t LimitNs() const;
  void JudgeAllIn(const std::vector<const Rank*>& waiting, WaitVerdict* verdict) const;
  void JudgeDevices(const std::vector<const Rank*>& waiting, WaitVerdict* verdict) const;
  void JudgeAwaited(const std::vector<const Rank*>& awaited, uint64_t now_ns,
                    WaitVerdict* verdict) const;
  size_t Count() const;

  WaitLimits limits_;
  uint32_t world_ = 0;
  std::map<uint32_t, Rank> ranks_;
  std::vector<EndedRank> ended_;      // the first one first
  std::deque<uint64_t> ended_waits_;  // 0 where a rank had run between two looks
};

}  // namespace ranktap::collector

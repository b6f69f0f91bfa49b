// One window of capture as it ends: which calls are its own, and whether all of their records have
// come. Calls are known by correlation ids, which grow and wrap.
// Runs on: the drain thread.  May not: call CUPTI, wait.
#pragma once

#include <cstdint>

#include "agent/core/writer.h"
#include "agent/sources/cupti/cupti_abi.h"

namespace ranktap::agent::cupti {

class Window {
 public:
  // Asked of each record that comes. False: its call was made after the window had ended.
  [[nodiscard]] bool Takes(const Record& record);

  // No call belongs to it any more. `all_came`: there is a record for each launch.
  void Close(const ThreadStates::LastCalls& last, bool all_came);
  // Records of a graph's nodes come in no order: complete is when the last launch has been seen and
  // a round of flush and drain has brought nothing.
  [[nodiscard]] bool EndRound();
  // From here on a record may belong to any call again.
  void End() { is_closing_ = false; }

  // CUPTI keeps recording kernels after this window, which nobody wants.
  void Park() { parked_after_ = last_correlation_; }
  // A kernel or graph that was launched since Park and before `next_first`, the next window's first
  // call (0: it has none yet). Nobody has seen its call.
  [[nodiscard]] bool IsAfterPark(const Record& record, uint32_t next_first) const;

 private:
  void KeepNewest(const Record& record);

  bool is_closing_ = false;
  bool last_launch_seen_ = false;
  uint32_t last_correlation_ = 0;
  uint32_t last_launch_ = 0;
  uint32_t newest_launch_ = 0;  // the highest id of a launch that has a record
  uint32_t parked_after_ = 0;   // the last id of the window that ended so
  uint64_t records_ = 0, records_before_round_ = 0;
};

}  // namespace ranktap::agent::cupti

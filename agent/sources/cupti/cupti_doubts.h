// When CUPTI is not to be believed: times of another clock, no ids, no records at all. Each doubt
// is noted once. Runs on: the drain thread; the thread inside cuInit before it.  May not: call
// CUPTI.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/sources/cupti/cupti_features.h"
#include "agent/sources/cupti/cupti_records.h"

namespace ranktap::agent::cupti {

class Doubts {
 public:
  struct Clocks {
    uint64_t realtime_ns = 0, monotonic_ns = 0;
  };
  static Clocks ReadClocks();

  // Before the first record can be made.
  void Begin(const Clocks& now) { began_ = now; }
  TimeBounds PossibleTimes(const Clocks& now) const;
  void NoteImpossibleTimes(uint64_t times);

  // Asked for after flushes that are not forced: those cut work short.
  void NoteUntimed(uint64_t works, uint32_t device_buffers);
  void NoteFlushCost();
  // At a session's end: all launches of graphs so far, and all records of graphs.
  void NoteSilentGraphs(uint64_t launches, uint64_t records);

  void NoteWrongGraphIds(const Features& features);
  void NoteMissingCallbacks();
  // Neither our hooks nor OpenMapped see a CUPTI in the program itself: the driver serves one of
  // the two.
  void NoteStaticCupti();

  // A launch's callback sets it at once, a record says so only when its buffer comes back.
  std::atomic<bool>& lacks_ids() { return lacks_ids_; }
  void NoteApiRecords();

  // Asked at each flush, of `kernels` that have come for so many `launches`.
  void WatchForRecords(uint64_t now_ns, bool is_armed, uint64_t kernels, uint64_t launches);

 private:
  Clocks began_;
  bool impossible_times_noted_ = false, graph_ids_noted_ = false;
  bool static_cupti_noted_ = false, missing_callbacks_noted_ = false, silence_noted_ = false;
  bool untimed_noted_ = false, silent_graphs_noted_ = false;
  uint64_t untimed_ = 0;
  uint64_t graph_launches_ = 0, graph_records_ = 0;  // at the end of the last session
  std::atomic<bool> lacks_ids_{false};
  uint64_t modules_searched_ = 0;  // ModuleLoadCount
  // Since when no kernel's record has come, what had come and been launched by then.
  uint64_t silent_since_ns_ = 0, silent_kernels_ = 0, silent_launches_ = 0;
};

}  // namespace ranktap::agent::cupti

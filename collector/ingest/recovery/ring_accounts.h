// The writers of a segment, copied from its slots: what each has counted, and the call it was
// inside of. An account adds up to what was found in the writer's ring:
//
//   slot: produced 1,000, lost 20 (ring full)     stored: 979 events
//   committed 979 + lost 20 = 999, one short of produced: the event that death cut short
//   account: produced 1,000, committed 979, lost 20 (ring full) and 1 (death)
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "collector/file/trace_state.h"
#include "collector/ingest/recovery/segment.h"
#include "proto/loss.h"
#include "proto/ring.h"
#include "ranktap/v1/control.pb.h"

namespace ranktap::collector {

class RingAccounts {
 public:
  // `state`: what has been stored so far. It outlives this.
  explicit RingAccounts(const TraceState& state) : state_(state) {}

  // Copies the `count` slots at `offset`. False: the segment ends before.
  [[nodiscard]] bool Read(const Segment& segment, uint64_t offset, uint32_t count);

  // How many events the writer can have made at most: what a damaged chunk says is not believed.
  uint64_t MostProduced(uint32_t writer) const;
  proto::LossCounts LossesOf(uint32_t writer) const;

  // Those that no frame has named are appended to a serialised v1.Dictionary.
  void AppendNewWriters(std::string* dictionary) const;
  // A serialised v1.Accounts, once all events are stored; empty: there are no writers. After a
  // death it ends the stored writers, too, whose counters the program wrote over.
  std::string Accounts(bool process_is_dead) const;
  // A serialised v1.OpenCalls; empty: nobody was inside of one. `id_of`: of a function's name.
  std::string OpenCalls(const std::function<uint32_t(proto::ArenaRef)>& id_of) const;

 private:
  struct Slot {
    proto::WriterKind kind;
    int32_t thread;
    bool ended;
    uint64_t produced;
    proto::LossCounts lost;
    uint64_t open_since_ticks;
    uint32_t open_api, open_correlation;
  };

  void AddUnreadable(v1::Accounts* accounts) const;

  const TraceState& state_;
  std::map<uint32_t, Slot> slots_;  // by writer id
};

}  // namespace ranktap::collector

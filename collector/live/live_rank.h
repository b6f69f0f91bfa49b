// What a rank does now, from its frames as they pass: its last steps, and for how long its devices
// were busy and its host was in which phase. Reads events only while somebody asks for them;
// bounded in memory. Lives on the server's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collector/live/live_clock.h"
#include "collector/live/live_names.h"
#include "proto/decode.h"
#include "proto/frame.h"
#include "ranktap/v1/hello.pb.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

inline constexpr size_t kLiveSteps = 64;

// Decoded columns, lent to one frame at a time. They only grow.
struct LiveColumns {
  struct Ranges {
    uint32_t count = 0;
    std::vector<uint64_t> time, name, domain, id, payload;
  };
  Ranges pushes, pops, starts, ends;
  std::vector<uint64_t> lengths, kernels;  // of work
  std::vector<uint64_t> marks;             // their names
};

class LiveRank {
 public:
  explicit LiveRank(const v1::HostClock& clock);
  ~LiveRank();

  // A frame whose checks it has passed. Names and clocks are taken note of; events only where
  // `columns` is not null.
  void Take(const proto::FrameView& frame, LiveColumns* columns);
  // Events have gone by untaken: nothing is known of what was open then.
  void Resume();
  // Nothing, until events have been taken.
  void Describe(uint64_t now_ns, v1::LiveStatus* status) const;
  size_t MemoryBytes() const;

 private:
  struct State;
  void TakeEvents(const proto::FrameView& frame, LiveColumns* columns);

  LiveNames names_;
  LiveClock clock_;
  std::unique_ptr<State> state_;  // from the first events on that somebody wanted
};

}  // namespace ranktap::collector

// A time in which kernels are not recorded, announced with its reason as it begins and as it ends.
// Runs on: the thread inside cuInit before the drain thread, then on that.  May not: call CUPTI.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "agent/core/announcements.h"
#include "agent/core/host_clock.h"
#include "proto/modes.h"

namespace ranktap::agent::cupti {

class Gap {
 public:
  // `source`: what is missing of the trace.
  explicit Gap(std::string_view source) : source_(source) {}
  bool is_open() const { return since_ticks_ != 0; }
  bool IsOpenFor(proto::GapReason reason) const { return is_open() && reason_ == reason; }

  // Announced as open at once, since the process may end in it.
  void Begin(proto::GapReason reason, std::string detail) {
    since_ticks_ = NowTicks();
    reason_ = reason;
    detail_ = std::move(detail);
    AnnounceUntil(0);
  }

  // Open still where the announcement finds no memory.
  void End() {
    AnnounceUntil(NowTicks());
    since_ticks_ = 0;
  }

 private:
  void AnnounceUntil(uint64_t end_ticks) const {
    AnnounceGap({.reason = reason_,
                 .source = source_,
                 .start_ticks = since_ticks_,
                 .end_ticks = end_ticks,
                 .detail = detail_});
  }

  const std::string_view source_;
  uint64_t since_ticks_ = 0;  // 0: capturing
  proto::GapReason reason_ = proto::GapReason::kLevel;
  std::string detail_;
};

}  // namespace ranktap::agent::cupti

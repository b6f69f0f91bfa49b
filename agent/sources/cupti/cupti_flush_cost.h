// Whether a flush takes more and more of our thread: CUPTI before 13.4 U1 is said to use more CPU
// the longer it records.
// Runs on: the drain thread.  May not: read a clock.
#pragma once

#include <cstdint>

namespace ranktap::agent::cupti {

class FlushCost {
 public:
  // A flush, and how many events have been made so far. True once: a row of flushes has cost three
  // times what the cheapest one did, by itself and for each event.
  [[nodiscard]] bool HasTripled(uint64_t cpu_ns, uint64_t events) {
    row_ns_ += cpu_ns;
    if (++flushes_ < kFlushes) return false;
    const Row row{.cpu_ns = row_ns_, .events = events - events_before_ + 1};
    row_ns_ = flushes_ = 0;
    events_before_ = events;
    const bool is_dear = row.cpu_ns >= kFlushes * kLeastNs && row.cpu_ns >= 3 * cheapest_.cpu_ns &&
                         row.ns_of_event() >= 3 * cheapest_.ns_of_event();
    const bool is_first = is_dear && has_row_ && !is_told_;
    if (!has_row_ || row.cpu_ns < cheapest_.cpu_ns) cheapest_ = row;
    has_row_ = true;
    is_told_ |= is_first;
    return is_first;
  }

 private:
  static constexpr uint64_t kFlushes = 16;
  // Below it a flush a second is less than a thousandth of a core.
  static constexpr uint64_t kLeastNs = 1'000'000;

  struct Row {
    uint64_t cpu_ns = 0, events = 1;
    double ns_of_event() const { return static_cast<double>(cpu_ns) / static_cast<double>(events); }
  };

  Row cheapest_;
  uint64_t row_ns_ = 0, flushes_ = 0, events_before_ = 0;
  bool has_row_ = false, is_told_ = false;
};

}  // namespace ranktap::agent::cupti

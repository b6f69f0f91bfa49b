// The agent's own bill, v1.Cost (control.proto says what each counter means). A new counter is one
// line here and its field there.
// Runs on: the sender thread; the exiting thread for the last one.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranktap::agent {

// Member, and the number of the field of that name.
#define RANKTAP_COST_COUNTERS(COUNTER) \
  COUNTER(callbacks, 1)                \
  COUNTER(callback_ticks, 2)           \
  COUNTER(drain_cpu_ns, 3)             \
  COUNTER(sender_cpu_ns, 4)            \
  COUNTER(frames, 5)                   \
  COUNTER(bytes, 6)                    \
  COUNTER(threads, 7)                  \
  COUNTER(stall_max_ticks, 8)          \
  COUNTER(names_missing, 9)            \
  COUNTER(cupti_errors, 10)            \
  COUNTER(flushes, 11)                 \
  COUNTER(stacks, 12)                  \
  COUNTER(stack_memo_hits, 13)         \
  COUNTER(stack_memo_errors, 14)       \
  COUNTER(stack_frames_learnt, 15)     \
  COUNTER(stack_slow_walks, 16)        \
  COUNTER(stacks_truncated, 17)        \
  COUNTER(stacks_refused, 18)          \
  COUNTER(stacks_unnamed, 19)          \
  COUNTER(budget_ppm, 20)              \
  COUNTER(steps_down, 21)              \
  COUNTER(watched_ns, 22)              \
  COUNTER(polls, 23)                   \
  COUNTER(resident_bytes, 24)          \
  COUNTER(peak_resident_bytes, 25)     \
  // Last, so that one more is one line.

#define RANKTAP_MEMBER(name, number) uint64_t name = 0;
struct CostFields {
  RANKTAP_COST_COUNTERS(RANKTAP_MEMBER)
};
#undef RANKTAP_MEMBER

struct CostCounter {
  std::string_view name;
  uint64_t CostFields::*member;
  uint32_t field;
};

#define RANKTAP_ROW(name, number) {#name, &CostFields::name, number},
inline constexpr CostCounter kCostCounters[] = {RANKTAP_COST_COUNTERS(RANKTAP_ROW)};
#undef RANKTAP_ROW
#undef RANKTAP_COST_COUNTERS

}  // namespace ranktap::agent

// What LiveRank remembers of events: ranges that are open, and sums. Thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/live/busy_spans.h"
#include "collector/live/live_names.h"

namespace ranktap::collector {

struct LiveStep {
  int64_t number = 0;
  int64_t begin = 0, end = 0;  // CLOCK_MONOTONIC_RAW
};

class LiveState {
 public:
  // A range as far as it matters here; kNothing keeps its place in its thread's stack.
  struct Open {
    enum class What : uint8_t { kNothing, kStep, kPhase, kCollective };
    What what = What::kNothing;
    LivePhase phase = LivePhase::kNone;
    int64_t begin = 0;
    int64_t number = 0;  // of a step: -1 where its name has none
    std::string name;    // of a collective
  };

  void Push(uint32_t writer, uint64_t domain, Open range);
  void Pop(uint32_t writer, uint64_t domain, int64_t time);
  void Start(uint64_t id, Open range);
  void End(uint64_t id, int64_t time);
  // Events are missing: ranges that are open can no longer be joined.
  void ForgetOpen();

  // Where this writer's next frame begins if nothing is missing; 0: not known.
  uint64_t& next_event(uint32_t writer);
  // True for the first thread that makes such ranges, until our own hooks tell of steps.
  bool TakesProgramSteps(uint32_t writer);
  void HookTellsSteps() { hook_tells_steps_ = true; }

  BusySpans busy, computing, collectives;
  uint64_t kernels = 0, out_of_memory = 0;
  std::array<int64_t, kLivePhases> phases{};
  uint64_t step_count = 0;
  std::deque<LiveStep> steps;  // the last ones, by end

  // The range of this kind that has been open for longest, of whichever thread; null: none is.
  const Open* LongestOpen(Open::What what, LivePhase phase = LivePhase::kNone) const;

 private:
  struct Stack {
    uint64_t domain = 0;
    size_t depth = 0;          // of all that are open
    std::vector<Open> ranges;  // of the outermost of them
  };
  struct Writer {
    uint64_t next_event = 0;
    std::vector<Stack> stacks;
  };
  void Close(const Open& range, int64_t end);

  std::unordered_map<uint32_t, Writer> writers_;
  std::unordered_map<uint64_t, Open> started_;  // by id
  bool hook_tells_steps_ = false;
  uint32_t step_writer_ = 0;
};

}  // namespace ranktap::collector

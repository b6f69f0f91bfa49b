// What each thread was found doing, equal looks in a row as one event.
// Runs on: the sampler.  May not: allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "agent/sources/samples/sample_lines.h"

namespace ranktap::agent::samples {

// One look at one thread.
struct Look {
  int32_t thread;
  uint32_t frame;
  proto::SampleState state;
  LookCounts counts;  // of the thread, since it began
};

class ThreadRuns {
 public:
  static constexpr size_t kMostThreads = 256;

  // Between BeginRound and EndRound a thread is looked at once; who was not has ended.
  void BeginRound(uint64_t now_ticks) { ++round_, now_ticks_ = now_ticks; }
  // Or new since a Cut.
  bool IsNew(int32_t thread) const {
    const size_t i = Find(thread);
    return i == count_ || runs_[i].is_cut;
  }
  // What LookCounts has at `which`, since the last look; UINT64_MAX: this is the first.
  uint64_t SinceLook(int32_t thread, size_t which, uint64_t count) const;
  void Add(const Look& look, SampleLines& lines);
  void EndRound(SampleLines& lines);
  // Tells what is open. Samples go on from there, of frames that are told again.
  void Cut(SampleLines& lines);
  // Tells what is open: samples end here, for now.
  void Close(SampleLines& lines);

 private:
  struct Run {
    int32_t thread;
    uint32_t frame, looks;
    proto::SampleState state;
    uint64_t start_ticks, end_ticks;
    LookCounts counts, at;  // of the run, and at its end since the thread began
    uint64_t round;
    bool is_cut;
  };

  size_t Find(int32_t thread) const;
  static void Tell(const Run& run, SampleLines& lines);
  static void Restart(Run* run);

  std::array<Run, kMostThreads> runs_{};
  size_t count_ = 0;
  uint64_t round_ = 0, now_ticks_ = 0;
};

}  // namespace ranktap::agent::samples

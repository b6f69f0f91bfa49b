// What the kernel counted of threads, the control group and the machine, told four times a second.
// Runs on: SetUp on the starting thread, then the sampler; CloseInForkChild in a fork child.
// May not: allocate once it is set up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "agent/sources/samples/host_readings.h"
#include "agent/sources/samples/sample_lines.h"
#include "agent/sources/samples/thread_readings.h"

namespace ranktap::agent::samples {

class CountSpans {
 public:
  void SetUp() { host_.SetUp(); }

  // Between the two, Look is called once for each thread.
  void BeginRound(uint64_t now_ns, uint64_t now_ticks);
  void EndRound(SampleLines& lines);
  // Zeros where there is no room for the thread, or the system shows nothing.
  LookCounts Look(int32_t thread);

  // A collector that came later has heard nothing.
  void Forget() { nodes_are_told_ = false; }
  // Nothing is recorded for now: gives the descriptors back.
  void Close();
  void CloseInForkChild();

 private:
  struct Span {
    int32_t thread = 0;  // 0: free
    bool is_there = false;
    uint64_t start_ticks = 0;
    ThreadCounts at, now;
  };

  bool IsDue() const { return now_ns_ >= due_ns_; }
  void Tell(Span* span, SampleLines& lines);
  void TellHost(SampleLines& lines);

  HostReadings host_;
  ThreadReadings threads_;
  std::array<Span, ThreadReadings::kMostWhole> spans_{};
  HostCounts host_at_;
  ThreadReadings::Others others_at_;
  uint64_t host_start_ticks_ = 0;  // 0: not read yet
  uint64_t now_ns_ = 0, now_ticks_ = 0, due_ns_ = 0;
  bool nodes_are_told_ = false;
};

}  // namespace ranktap::agent::samples

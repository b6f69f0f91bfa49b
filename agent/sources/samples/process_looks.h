// One round of looks at the threads of a process, or of several: which of them had a CPU, which
// waited, which want the interpreter's lock.
// Runs on: the sampler.  May not: allocate.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "agent/sources/samples/sample_lines.h"
#include "agent/sources/samples/thread_runs.h"
#include "proto/python_frames.h"

namespace ranktap::agent::samples {

class ProcessLooks {
 public:
  void BeginRound(uint64_t now_ns, uint64_t now_ticks);
  bool IsNew(int32_t thread) const { return runs_.IsNew(thread); }
  // From storage, since the last look.
  bool HasRead(int32_t thread, const LookCounts& counts) const {
    constexpr size_t kReadBytes = 3;
    const uint64_t bytes = runs_.SinceLook(thread, kReadBytes, counts[kReadBytes]);
    return bytes != 0 && bytes != std::numeric_limits<uint64_t>::max();
  }
  // `frame`: of StackNumbers; 0: the stack changed each time it was read.
  void Add(const proto::PythonThread& thread, uint32_t frame, const LookCounts& counts);
  // All of a process were added: so many of its threads wait for its lock.
  void EndProcess(uint32_t gil_waiters, SampleLines& lines);
  void EndRound(SampleLines& lines) { runs_.EndRound(lines); }
  void Cut(SampleLines& lines) { runs_.Cut(lines); }
  void Close(SampleLines& lines) { runs_.Close(lines); }

 private:
  struct Found {
    Look look;
    bool may_want_gil;
  };
  ThreadRuns runs_;
  std::array<Found, ThreadRuns::kMostThreads> found_{};  // of the process at hand
  size_t found_count_ = 0, hopefuls_ = 0;
  uint64_t began_ns_ = 0, passed_ns_ = 0;
};

}  // namespace ranktap::agent::samples

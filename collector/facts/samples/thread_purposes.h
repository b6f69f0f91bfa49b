// What a process's threads and the processes that it started are for, by the stacks that were
// sampled in them: PyTorch's loader, its workers, its compile workers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collector/facts/samples/host_samples.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// What a worker of PyTorch's DataLoader does at a time, or the thread that pins memory for it.
enum class LoaderWork : uint8_t {
  kNone,     // it is not a worker's
  kWaits,    // for the batch that it is to make
  kStarts,   // imports, and all else before its first batch
  kReads,    // files
  kDecodes,  // images, sound
  kTransforms,
  kMakesItem,  // other code of the dataset
  kCollates,   // items to a batch
  kSends,      // the batch to the training process
  kPins,       // its memory
};
inline constexpr size_t kLoaderWorks = 10;
// "reading", "waiting for work"
std::string_view NameOf(LoaderWork work);

class ThreadPurposes {
 public:
  explicit ThreadPurposes(const Trace& trace);

  // "main thread", "pin-memory thread", "thread 4711", "loader worker 0", "helper 4711": of a
  // process that was started, all its threads have one name.
  std::string NameOfThread(uint32_t thread) const;
  // "main", "other", "pin memory", "loader workers", "compile workers", "helpers".
  std::string_view KindOfThread(uint32_t thread) const;
  // -1: not a worker of a loader. A worker that begins after another has ended has its number.
  int LoaderWorkerOf(uint32_t thread) const;
  // How many work at one time.
  uint32_t loader_workers() const { return loader_workers_; }
  LoaderWork WorkOf(const HostSample& sample) const;

 private:
  struct Process {
    int worker = -1;
    bool compiles = false;
    int64_t start = INT64_MAX, end = INT64_MIN;
  };
  const Trace& trace_;
  std::map<uint32_t, Process> processes_;  // started ones, by number
  // By frame: of a worker that runs, and of one that waits.
  std::unordered_map<uint32_t, std::array<LoaderWork, 2>> work_;
  std::vector<uint32_t> pins_memory_;  // threads
  uint32_t loader_workers_ = 0;
};

// Worked out once and kept in the trace's memo.
const ThreadPurposes& PurposesOf(const Trace& trace);

}  // namespace ranktap::collector

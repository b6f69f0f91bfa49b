// What the agent of a live process has noted about CUDA, in the memory that it shares with its
// collector: the calls that threads are inside of, and how much of the device's work has ended. It
// is read from outside, and not believed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace ranktap::collector {

struct CudaCall {
  std::string name;                 // "cudaStreamSynchronize"
  std::optional<int64_t> since_ns;  // how long ago it began
};

struct CudaState {
  std::map<pid_t, CudaCall> calls;  // by the thread's number as the process sees it
  // Kernels, copies and the like that the agent knows to have ended. It asks CUPTI for them about
  // once a second.
  uint64_t work_ended = 0;
};

// Reads one process again and again. It keeps where the agent's memory lies.
class CudaStateReader {
 public:
  explicit CudaStateReader(pid_t process) : process_(process) {}

  // Empty: no agent, or one of another version. Looks for one every so many reads.
  CudaState Read();

 private:
  pid_t process_;
  uint64_t base_ = 0;  // 0: not known
  int reads_until_search_ = 0;
};

}  // namespace ranktap::collector

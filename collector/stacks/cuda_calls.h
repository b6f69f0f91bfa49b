// The CUDA calls that the threads of a live process are inside of: its agent notes each as it is
// entered, in the memory that it shares with its collector. That is read from outside, and not
// believed.
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

// By the thread's number as the process sees it. Empty: no agent, or one of another version.
std::map<pid_t, CudaCall> CudaCallsOf(pid_t process);

}  // namespace ranktap::collector

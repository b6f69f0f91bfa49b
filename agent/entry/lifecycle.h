// The agent's life in a process: starts once, at the first CUDA or NVTX activity; ends with the
// process; is inert in a fork child.
// Runs on: the thread that enters first (user thread, inside cuInit or the program's
// first NVTX call); then the exiting thread, and the child's after a fork.
// May not: block for long, touch the job's output, start anything in a constructor.
#pragma once

#include <cstdint>

namespace ranktap::agent {

// Starts the agent unless it runs already. False: it is off in this process, for good (disabled, a
// fork child, AT_SECURE, nowhere to send to, no memory); RANKTAP_LOG has the reason.
[[nodiscard]] bool StartOnce();

// The driver is initialising, in a process whose agent runs. Again: nothing.
void OnCudaInit();

}  // namespace ranktap::agent

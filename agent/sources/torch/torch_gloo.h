// Collectives of gloo, which PyTorch carries inside libtorch_cpu and calls through that library's
// own table: a range of each, on the thread that runs it, from its begin to its end.
// Runs on: threads that hold the interpreter's lock.  May not: be called before torch is loaded.
#pragma once

#include "proto/events.h"

namespace ranktap::agent {

// Redirects libtorch_cpu's calls, once; later calls only change the domain. False: this PyTorch has
// no gloo that can be watched.
[[nodiscard]] bool WatchGloo(proto::ArenaRef domain);

}  // namespace ranktap::agent

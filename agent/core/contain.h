// The one place that stops a failure of ours from reaching the host.
// Runs on: any thread.  May not: swallow the host's own exceptions or cancellation.
#pragma once

#include <cxxabi.h>

#include <utility>

#include "agent/core/capture_state.h"

namespace ranktap::agent {

// Counts, logs and goes quiet; out of line, so that the hooks stay small.
void OnContainedFailure();

// Runs `body` so that no failure of ours reaches the host; gives `otherwise` when there was one.
template <typename Result, typename Body>
[[nodiscard]] Result Contain(Result otherwise, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (abi::__forced_unwind&) {
    throw;  // pthread_cancel: swallowing it makes glibc abort the process
  } catch (...) {
    OnContainedFailure();
    return otherwise;
  }
}

}  // namespace ranktap::agent

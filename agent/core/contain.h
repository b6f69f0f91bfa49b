// The one place that stops a failure of ours from reaching the host.
// Runs on: any thread.  May not: swallow the host's own exceptions or cancellation.
#pragma once

#include <cxxabi.h>

#include <new>
#include <utility>

#include "agent/core/capture_state.h"

namespace ranktap::agent {

// Out of line, so that the hooks stay small. Counts, logs and goes quiet.
void OnContainedFailure();
// Counts and logs: what was in hand is lost, the next one may fare better.
void OnNoMemory();

// Runs `body` so that no failure of ours reaches the host; gives `otherwise` when there was one.
template <typename Result, typename Body>
[[nodiscard]] Result Contain(Result otherwise, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (abi::__forced_unwind&) {
    throw;  // pthread_cancel: swallowing it makes glibc abort the process
  } catch (const std::bad_alloc&) {
    OnNoMemory();
    return otherwise;
  } catch (...) {
    OnContainedFailure();
    return otherwise;
  }
}

// For what loses nothing where it is cut short and begun anew. False: there was no memory for it.
template <typename Body>
[[nodiscard]] bool HadMemory(Body&& body) {
  try {
    std::forward<Body>(body)();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace ranktap::agent

// The callbacks that CUPTI makes on the program's threads: CUDA calls as they are entered and left,
// contexts, streams and graphs as they come and go, buffers as they are wanted and full.
// Runs on: user threads, inside CUDA calls, with CUPTI's locks held.  May not: allocate, lock, log,
// call CUDA; call CUPTI except for the id of the object at hand.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "agent/sources/cupti/cupti_api.h"
#include "agent/sources/cupti/cupti_buffers.h"
#include "agent/sources/cupti/cupti_calls.h"

namespace ranktap::agent::cupti {

// The callbacks' objects; complete before CUPTI knows of them, never destroyed.
struct CallbackState {
  const Api* api = nullptr;
  const CallTable* calls = nullptr;
  BufferPool* buffers = nullptr;
  // Gets buffers that are not ours: a client of the program's may leave some in CUPTI as it ends.
  std::atomic<BufferCompleted> strangers{nullptr};
  // Set, and the drain thread woken, once: a launch came without a correlation id.
  std::atomic<bool>* wants_correlation = nullptr;
  // Counts the times of capture: Drain adds 1 before each. A thread's depth from another epoch
  // means nothing: nobody saw the end of a call that was under way then.
  std::atomic<uint32_t> epoch{0};
  // Level full: threads of CUPTI's own, which collect for all others, get large buffers.
  std::atomic<bool> large_buffers{false};
  // The lowest correlation id of a call in this time of capture; 0: none yet.
  std::atomic<uint32_t> first_correlation{0};
  // CUPTI's last words, once it has ended by itself; complete when `ended` is set.
  std::array<char, 200> last_words{};
  std::atomic<bool> ending{false}, ended{false};
  // The last error that CUPTI has told of and goes on after.
  std::atomic<Result> error{kSuccess};
};
extern CallbackState g_callbacks;

void OnCallback(void* user, uint32_t domain, uint32_t cbid, const void* data);
void OnBufferRequested(uint8_t** buffer, size_t* bytes, size_t* max_records);
void OnBufferCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                       size_t valid_bytes);

}  // namespace ranktap::agent::cupti

// Ranges that one thread may open and another close, and the backward pass as one.
// Runs on: threads that hold the interpreter's lock.  May not: raise an exception of its own.
#pragma once

#include "agent/core/capture_state.h"
#include "agent/core/writer.h"
#include "agent/sources/torch/python_api.h"
#include "proto/events.h"

namespace ranktap::agent {

// The thread to record on, any; nullptr: capture is off, or the event is counted as lost.
inline ThreadState* RecordingThread() {
  if (!Capturing(kCaptureFramework)) return nullptr;
  ThreadState* const thread = ThreadState::Current();
  if (thread == nullptr) [[unlikely]]
    ThreadStates::LoseWithoutWriter();
  return thread;
}

inline constexpr uint32_t kUnsignedPayload = 1;  // NVTX_PAYLOAD_TYPE_UNSIGNED_INT64

// A number of a range that nothing else in the process has.
uint64_t NextRange();
inline proto::RangeStartEvent StartOfRange(uint64_t ticks, uint64_t range, proto::ArenaRef domain,
                                           proto::ArenaRef name, uint64_t payload) {
  return {
      .time_ticks = ticks,
      .range = range,
      .nvtx = {
          .domain = domain, .name = name, .payload = payload, .payload_type = kUnsignedPayload}};
}

// The number of the range, also where nothing is recorded.
uint64_t OpenRange(proto::ArenaRef domain, proto::ArenaRef name, uint64_t payload);
void CloseRange(uint64_t range);
// One of this thread, in the order of a stack.
void PushRange(proto::ArenaRef domain, proto::ArenaRef name);
void PopRange(proto::ArenaRef domain);

// backward_call(original, domain, name) -> a function that calls it with the same arguments, a
// range around the outermost call at a time; None: not in this Python. Kept for good.
PyObject* NewBackwardCall(PyObject*, PyObject* const* arguments, intptr_t count);
// So nobody needs to look for the backward pass at what a root module returns.
bool HasBackwardCall();

}  // namespace ranktap::agent

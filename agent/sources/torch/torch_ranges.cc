// Ranges from our Python sources, and around autograd's engine.
// Runs on: threads that hold the interpreter's lock.  May not: raise, allocate in steady state,
// lock.
#include "agent/sources/torch/torch_ranges.h"

#include <atomic>

#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/core/writer.h"

namespace ranktap::agent {
namespace {

using proto::ArenaRef;

// Numbers of their own, far from NVTX's, which count from 1.
constinit std::atomic<uint64_t> g_next_range{uint64_t{1} << 62};

// Guarded by the interpreter's lock, which the engine gives back while it works.
struct BackwardCall {
  PyObject* original = nullptr;
  ArenaRef domain = 0;
  ArenaRef name = 0;
  bool is_open = false;  // recomputation may run the engine inside of the engine, on another thread
};
constinit BackwardCall g_backward{};

PyObject* CallBackward(PyObject*, PyObject* const* arguments, intptr_t count, PyObject* keywords) {
  BackwardCall& call = g_backward;
  if (call.is_open || !Capturing(kCaptureFramework)) {
    return g_python.PyObject_Vectorcall(call.original, arguments, static_cast<size_t>(count),
                                        keywords);
  }
  call.is_open = true;
  // This frame stays on its thread: to ask for it again is a call of the loader's.
  ThreadState* const thread = RecordingThread();
  const uint64_t range = NextRange();
  if (thread != nullptr) {
    thread->Emit(StartOfRange(NowTicks(), range, call.domain, call.name, 0));
  }
  PyObject* const result =
      g_python.PyObject_Vectorcall(call.original, arguments, static_cast<size_t>(count), keywords);
  if (thread != nullptr && Capturing(kCaptureFramework)) {
    thread->Emit(proto::RangeEndEvent{.time_ticks = NowTicks(), .range = range});
  }
  call.is_open = false;
  return result;
}

}  // namespace

uint64_t NextRange() { return g_next_range.fetch_add(1, std::memory_order_relaxed); }

uint64_t OpenRange(ArenaRef domain, ArenaRef name, uint64_t payload) {
  const uint64_t range = NextRange();
  if (ThreadState* thread = RecordingThread()) {
    thread->Emit(StartOfRange(NowTicks(), range, domain, name, payload));
  }
  return range;
}

void CloseRange(uint64_t range) {
  if (ThreadState* thread = RecordingThread()) {
    thread->Emit(proto::RangeEndEvent{.time_ticks = NowTicks(), .range = range});
  }
}

void PushRange(ArenaRef domain, ArenaRef name) {
  if (ThreadState* thread = RecordingThread()) {
    thread->Emit(
        proto::RangePushEvent{.time_ticks = NowTicks(), .nvtx = {.domain = domain, .name = name}});
  }
}

void PopRange(ArenaRef domain) {
  if (ThreadState* thread = RecordingThread()) {
    thread->Emit(proto::RangePopEvent{.time_ticks = NowTicks(), .domain = domain});
  }
}

PyObject* NewBackwardCall(PyObject*, PyObject* const* arguments, intptr_t count) {
  PyObject* made = nullptr;
  if (count >= 3 && g_python.PyObject_Vectorcall != nullptr) {
    g_python.Py_IncRef(arguments[0]);
    g_backward.original = arguments[0];
    g_backward.domain = static_cast<ArenaRef>(g_python.PyLong_AsUnsignedLongLongMask(arguments[1]));
    g_backward.name = static_cast<ArenaRef>(g_python.PyLong_AsUnsignedLongLongMask(arguments[2]));
    static PyMethodDef method = {"_engine_run_backward", reinterpret_cast<void*>(&CallBackward),
                                 kMethFastcall | kMethKeywords, nullptr};
    made = g_python.PyCFunction_NewEx(&method, nullptr, nullptr);
    if (made == nullptr) g_python.PyErr_Clear();
  }
  if (made != nullptr) return made;
  return None();
}

bool HasBackwardCall() { return g_backward.original != nullptr; }

}  // namespace ranktap::agent

// A ladder of cheap exits.
// Runs on: see torch_steps.h.  May not: likewise.
#include "agent/sources/torch/torch_steps.h"

#include <atomic>

#include "agent/core/capture_state.h"

namespace ranktap::agent {
namespace {

// Of steps in which nothing is recorded the first calls Python, which closes what is open, and then
// each of as many: the rank may be known by then.
constexpr uint64_t kCallEvery = 64;

// Guarded by the interpreter's lock, but for g_forward.
struct StepState {
  PyObject* before = nullptr;
  PyObject* after = nullptr;
  const void* last_optimizer = nullptr;
  bool forwards = false;    // modules were ever seen to run
  bool was_asleep = false;  // at the last call of `after`
  uint64_t asleep = 0;      // steps since
  uint64_t skipped = 0;
};
constinit StepState g_steps{};
constinit std::atomic<bool> g_forward{false};
// Somebody wants to be woken. The function is guarded by the interpreter's lock.
constinit std::atomic<bool> g_wants_wake{false};
constinit PyObject* g_wake = nullptr;

// On the main thread, between two instructions of its Python code.
int RunWake(void*) {
  if (g_wake == nullptr) return 0;
  PyObject* const result = g_python.PyObject_Vectorcall(g_wake, nullptr, 0, nullptr);
  if (result == nullptr) return -1;  // contained, so KeyboardInterrupt: the program's
  g_python.Py_DecRef(result);
  return 0;
}

PyObject* None() {
  g_python.Py_IncRef(g_python._Py_NoneStruct);
  return g_python._Py_NoneStruct;
}

// Our own functions contain their failures; KeyboardInterrupt is the program's.
PyObject* Call(PyObject* function, PyObject* optimizer) {
  PyObject* const arguments[] = {optimizer};
  return function == nullptr ? None()
                             : g_python.PyObject_Vectorcall(function, arguments, 1, nullptr);
}

// Not so in a process that has not started to record or never will, where Python must be asked.
bool IsAsleep() { return (CaptureMask() & (kCaptureAlive | kCaptureFramework)) == kCaptureAlive; }

bool TakeForward() {
  if (g_wants_wake.load(std::memory_order_relaxed)) return true;
  const bool forward = g_forward.load(std::memory_order_relaxed) &&
                       g_forward.exchange(false, std::memory_order_relaxed);
  g_steps.forwards = g_steps.forwards || forward;
  return forward || !g_steps.forwards;
}

}  // namespace

void NoteForward() {
  if (!g_forward.load(std::memory_order_relaxed)) g_forward.store(true, std::memory_order_relaxed);
}

PyObject* OnSteps(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 2 || g_python.PyObject_Vectorcall == nullptr) {
    return g_python.PyLong_FromUnsignedLongLong(0);
  }
  g_steps.before = arguments[0];
  g_steps.after = arguments[1];
  for (intptr_t i = 0; i < 2; ++i) g_python.Py_IncRef(arguments[i]);
  return g_python.PyLong_FromUnsignedLongLong(1);
}

PyObject* BeforeStep(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 1 || IsAsleep()) return None();
  return Call(g_steps.before, arguments[0]);
}

PyObject* AfterStep(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 1) return None();
  StepState& steps = g_steps;
  const bool asleep = IsAsleep();
  if (asleep && steps.was_asleep && arguments[0] == steps.last_optimizer &&
      ++steps.asleep % kCallEvery != 0) {
    if (TakeForward()) ++steps.skipped;
    return None();
  }
  steps.was_asleep = asleep;
  return Call(steps.after, arguments[0]);
}

PyObject* SetLastOptimizer(PyObject*, PyObject* optimizer) {
  g_steps.last_optimizer =
      reinterpret_cast<const void*>(g_python.PyLong_AsUnsignedLongLongMask(optimizer));
  return None();
}

PyObject* WakeBy(PyObject*, PyObject* function) {
  const bool wanted = function != g_python._Py_NoneStruct;
  if (wanted && (g_python.PyObject_Vectorcall == nullptr || g_python.Py_IsInitialized == nullptr)) {
    return g_python.PyLong_FromUnsignedLongLong(0);
  }
  g_wants_wake.store(wanted);
  if (wanted && g_wake == nullptr) {
    g_python.Py_IncRef(function);
    g_wake = function;  // kept for good, it is always the same
  }
  return g_python.PyLong_FromUnsignedLongLong(1);
}

// A full queue: the next step wakes.
void WakePython() {
  if (g_wants_wake.load() && g_python.Py_IsInitialized() != 0) {
    (void)g_python.Py_AddPendingCall(&RunWake, nullptr);
  }
}

PyObject* EndsStep(PyObject*, PyObject*) {
  return g_python.PyLong_FromUnsignedLongLong(TakeForward() ? 1 : 0);
}

PyObject* TakeSkippedSteps(PyObject*, PyObject*) {
  const uint64_t skipped = g_steps.skipped;
  g_steps.skipped = 0;
  return g_python.PyLong_FromUnsignedLongLong(skipped);
}

}  // namespace ranktap::agent

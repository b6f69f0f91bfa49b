// A ladder of cheap exits.
// Runs on: see torch_steps.h.  May not: likewise.
#include "agent/sources/torch/torch_steps.h"

#include <array>
#include <atomic>
#include <string_view>
#include <utility>

#include "agent/core/capture_state.h"
#include "agent/core/host_clock.h"
#include "agent/sources/torch/torch_ranges.h"

namespace ranktap::agent {
namespace {

// In a row of steps without recording, the first calls Python, which closes what is open, and then
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

// Steps that need no Python: 8 us of each. Guarded by the interpreter's lock.
struct PlainSteps {
  proto::ArenaRef domain = 0, name = 0, phases = 0, optimizer = 0;
  uint64_t range = 0;   // of the step that runs
  uint64_t number = 0;  // of it
  uint64_t until = 0;   // Python is to hear of the beginning of this one; 0: of each
  std::array<PyObject*, 2> dictionaries{};  // and as soon as one has more entries or less
  std::array<intptr_t, 2> sizes{};
  PyObject* cuda = nullptr;  // or another value of `_initialized`, which is
  PyObject* initialized = nullptr;
  const PyObject* cuda_state = nullptr;
};
constinit PlainSteps g_plain{};
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

void Keep(PyObject*& place, PyObject* object) {
  g_python.Py_IncRef(object);
  if (place != nullptr) g_python.Py_DecRef(place);
  place = object;
}

intptr_t SizeOf(PyObject* dictionary) {
  return dictionary == g_python._Py_NoneStruct ? 0 : g_python.PyDict_Size(dictionary);
}

bool IsAsLooked() {
  for (size_t i = 0; i < g_plain.sizes.size(); ++i) {
    if (SizeOf(g_plain.dictionaries[i]) != g_plain.sizes[i]) return false;
  }
  return g_python.PyDict_GetItem(g_plain.cuda, g_plain.initialized) == g_plain.cuda_state;
}

void OpenStepRange(uint64_t number) {
  g_plain.number = number;
  g_plain.range = OpenRange(g_plain.domain, g_plain.name, number);
}

// Ends the optimizer's phase and the step, and begins the next one, at one time: to find the thread
// and the time for each of the three took as long as to write them.
void TurnStep() {
  const uint64_t ended = std::exchange(g_plain.range, NextRange());
  ++g_plain.number;
  ThreadState* const thread = RecordingThread();
  if (thread == nullptr) return;
  const uint64_t now = NowTicks();
  thread->Emit(proto::RangePopEvent{.time_ticks = now, .domain = g_plain.phases});
  thread->Emit(proto::RangeEndEvent{.time_ticks = now, .range = ended});
  thread->Emit(StartOfRange(now, g_plain.range, g_plain.domain, g_plain.name, g_plain.number));
}

// Whether the step that the optimizer ended is over, without a word to Python.
bool EndPlainStep(const PyObject* optimizer) {
  if (g_plain.until <= g_plain.number + 1 || optimizer != g_steps.last_optimizer ||
      g_steps.was_asleep || !IsAsLooked() || !g_forward.load(std::memory_order_relaxed)) {
    return false;
  }
  (void)TakeForward();
  TurnStep();
  return true;
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
  if (g_plain.until > g_plain.number) {
    PushRange(g_plain.phases, g_plain.optimizer);
    return None();
  }
  return Call(g_steps.before, arguments[0]);
}

PyObject* AfterStep(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 1) return None();
  StepState& steps = g_steps;
  const bool asleep = IsAsleep();
  if (!asleep && EndPlainStep(arguments[0])) return None();
  g_plain.until = 0;
  if (asleep && steps.was_asleep && arguments[0] == steps.last_optimizer &&
      ++steps.asleep % kCallEvery != 0) {
    if (TakeForward()) ++steps.skipped;
    return None();
  }
  steps.was_asleep = asleep;
  return Call(steps.after, arguments[0]);
}

PyObject* BeginSteps(PyObject*, PyObject* const* arguments, intptr_t count) {
  if (count < 4) return None();
  proto::ArenaRef* const names[] = {&g_plain.domain, &g_plain.name, &g_plain.phases,
                                    &g_plain.optimizer};
  for (size_t i = 0; i < 4; ++i) {
    *names[i] = static_cast<proto::ArenaRef>(g_python.PyLong_AsUnsignedLongLongMask(arguments[i]));
  }
  return None();
}

PyObject* OpenStep(PyObject*, PyObject* number) {
  OpenStepRange(g_python.PyLong_AsUnsignedLongLongMask(number));
  return None();
}

PyObject* CloseStep(PyObject*, PyObject*) {
  CloseRange(g_plain.range);
  return g_python.PyLong_FromUnsignedLongLong(g_plain.number);
}

PyObject* StepNumber(PyObject*, PyObject*) {
  return g_python.PyLong_FromUnsignedLongLong(g_plain.number);
}

PyObject* SetPlainSteps(PyObject*, PyObject* const* arguments, intptr_t count) {
  g_plain.until = 0;
  if (count < 4 || g_python.PyDict_Size == nullptr || g_python.PyDict_GetItem == nullptr) {
    return None();
  }
  constexpr std::string_view kInitialized = "_initialized";
  if (g_plain.initialized == nullptr) {  // kept: to make it took each step as long as two ranges
    g_plain.initialized =
        g_python.PyUnicode_FromStringAndSize(kInitialized.data(), kInitialized.size());
    if (g_plain.initialized == nullptr) return nullptr;
  }
  for (size_t i = 0; i < g_plain.sizes.size(); ++i) {
    Keep(g_plain.dictionaries[i], arguments[i + 1]);
    g_plain.sizes[i] = SizeOf(arguments[i + 1]);
  }
  Keep(g_plain.cuda, arguments[3]);
  g_plain.cuda_state = g_python.PyDict_GetItem(g_plain.cuda, g_plain.initialized);
  g_plain.until = g_python.PyLong_AsUnsignedLongLongMask(arguments[0]);
  return None();
}

PyObject* LookAtNextStep(PyObject*, PyObject*) {
  g_plain.until = 0;
  return None();
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

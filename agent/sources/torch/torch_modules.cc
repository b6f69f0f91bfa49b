// The call of a module, and which name each has.
// Runs on: threads that hold the interpreter's lock.  May not: raise an exception of its own;
// allocate but when a module is named, or as CallAsMethod does.
#include "agent/sources/torch/torch_modules.h"

#include <array>
#include <atomic>
#include <unordered_map>
#include <utility>

#include "agent/core/callback_cost.h"
#include "agent/core/contain.h"
#include "agent/core/host_clock.h"
#include "agent/sources/torch/python_functions.h"
#include "agent/sources/torch/torch_ranges.h"
#include "agent/sources/torch/torch_steps.h"

namespace ranktap::agent {
namespace {

using proto::ArenaRef;

// Guarded by the interpreter's lock. Leaked: modules are called until the end.
using NameTable = std::unordered_map<const PyObject*, ArenaRef>;
NameTable& ModuleNames() {
  static NameTable& names = *new NameTable;
  return names;
}

// In front of it, since its look-up divides by a prime: 20 ns. Two to a line, so that two modules
// that fall together do not drive each other out.
struct alignas(32) NameLine {
  std::array<const PyObject*, 2> modules;
  std::array<ArenaRef, 2> names;
};
constinit std::array<NameLine, 256> g_name_lines{};
NameLine& LineOf(const PyObject* module) {
  const auto bits = reinterpret_cast<uintptr_t>(module);
  return g_name_lines[(bits >> 4 ^ bits >> 12) % g_name_lines.size()];
}

struct ModuleCall {
  PyObject* original = nullptr;
  PyObject* first_seen = nullptr;
  PyObject* root_done = nullptr;
  PyObject* root_begins = nullptr;  // nullptr: nobody asks
};
constinit ModuleCall g_call{};
constinit std::atomic<ArenaRef> g_module_domain{0};

// Calls one of our own Python functions, which contain their failures.
void Tell(PyObject* function, PyObject* argument) {
  PyObject* const arguments[] = {argument};
  PyObject* const result = g_python.PyObject_Vectorcall(function, arguments, 1, nullptr);
  if (result == nullptr) {
    g_python.PyErr_Clear();
  } else {
    g_python.Py_DecRef(result);
  }
}

[[gnu::noinline]] ArenaRef LookUpName(PyObject* self) {
  const NameTable& names = ModuleNames();
  auto known = names.find(self);
  if (known == names.end()) {
    Tell(g_call.first_seen, self);
    known = names.find(self);
  }
  if (known == names.end()) return 0;
  NameLine& line = LineOf(self);
  line = {.modules = {self, line.modules[0]}, .names = {known->second, line.names[0]}};
  return known->second;
}

ArenaRef NameOf(PyObject* self) {
  const NameLine& line = LineOf(self);
  if (line.modules[0] == self) [[likely]]
    return line.names[0];
  return line.modules[1] == self ? line.names[1] : LookUpName(self);
}

PyObject* CallModule(PyObject* self, PyObject* const* arguments, intptr_t count,
                     PyObject* keywords) {
  ThreadState* const begun = BeginCall(self);
  PyObject* const result = CallAsMethod(g_call.original, self, arguments, count, keywords);
  EndCall(self, begun, result);
  return result;
}

// Programs print what PyTorch's own is called, `_wrapped_call_impl`. The name is kept for good.
const char* NameOfFunction(PyObject* function) {
  if (g_python.PyObject_GetAttrString == nullptr) return "__call__";
  PyObject* const name = g_python.PyObject_GetAttrString(function, "__name__");
  intptr_t size = 0;
  const char* const text =
      name == nullptr ? nullptr : g_python.PyUnicode_AsUTF8AndSize(name, &size);
  if (text == nullptr) g_python.PyErr_Clear();
  return text == nullptr ? "__call__" : text;
}

constinit thread_local SteppedModule t_stepped;
// Some thread had one, ever: to ask for our own is a call of the loader's. Guarded by the lock.
constinit bool g_has_stepped = false;

[[gnu::always_inline]] inline void BeginOn(ThreadState& thread, ArenaRef name) {
  const uint64_t now = NowTicks();
  const CallbackCost cost(thread, now);
  ++thread.module_depth;
  thread.Emit(proto::RangePushEvent{
      .time_ticks = now,
      .nvtx = {.domain = g_module_domain.load(std::memory_order_relaxed), .name = name}});
}

// `thread`: where it began.
[[gnu::always_inline]] inline bool EndOn(ThreadState& thread) {
  if (!Capturing(kCaptureFramework) || thread.module_depth == 0) return false;
  --thread.module_depth;
  thread.Emit(proto::RangePopEvent{.time_ticks = NowTicks(),
                                   .domain = g_module_domain.load(std::memory_order_relaxed)});
  return thread.module_depth == 0;
}

}  // namespace

// Its caller is CPython, which no exception of ours may enter.
ThreadState* BeginCall(PyObject* module) {
  return Contain(static_cast<ThreadState*>(nullptr), [module]() -> ThreadState* {
    const ArenaRef name = NameOf(module);
    if (!EnterCall(module) || name == 0) return nullptr;
    ThreadState* thread = RecordingThread();
    if (g_call.root_begins != nullptr && thread != nullptr && thread->module_depth == 0) {
      Tell(g_call.root_begins, module);
      thread = RecordingThread();
    }
    NoteForward();
    if (thread != nullptr) BeginOn(*thread, name);
    return thread;
  });
}

void EndCall(PyObject* module, ThreadState* begun, PyObject* result) {
  (void)LeaveCall(module);
  // Also when the forward raised; then no other Python code may run here.
  if (begun != nullptr && EndOn(*begun) && result != nullptr && !HasBackwardCall()) {
    Tell(g_call.root_done, result);
  }
}

SteppedModule SetSteppedModule(SteppedModule next) {
  g_has_stepped = true;
  return std::exchange(t_stepped, next);
}

bool EnterCall(const PyObject* module) {
  if (!g_has_stepped) [[likely]]
    return true;
  SteppedModule& stepped = t_stepped;
  return stepped.module != module || stepped.calls++ == 0;
}

bool LeaveCall(const PyObject* module) {
  if (!g_has_stepped) [[likely]]
    return true;
  SteppedModule& stepped = t_stepped;
  return stepped.module != module || stepped.calls == 0 || --stepped.calls == 0;
}

bool IsAtRoot() {
  ThreadState* const thread = Capturing(kCaptureFramework) ? ThreadState::Current() : nullptr;
  return thread != nullptr && thread->module_depth == 0;
}

void SetModuleDomain(ArenaRef domain) { g_module_domain.store(domain); }

void BeginModule(ArenaRef name) {
  NoteForward();
  if (ThreadState* const thread = RecordingThread()) BeginOn(*thread, name);
}

bool EndModule() {
  ThreadState* const thread = RecordingThread();
  return thread != nullptr && EndOn(*thread);
}

bool HasModuleCall() { return g_call.original != nullptr; }

PyObject* MakeModuleCall(PyObject* type, PyObject* original, PyObject* first_seen,
                         PyObject* root_done) {
  if (g_python.PyDescr_NewMethod == nullptr || g_python.PyObject_Vectorcall == nullptr ||
      g_python.PyTuple_Size == nullptr) {
    return nullptr;
  }
  for (PyObject* object : {original, first_seen, root_done}) g_python.Py_IncRef(object);
  g_call.original = original;
  g_call.first_seen = first_seen;
  g_call.root_done = root_done;
  static PyMethodDef method = {NameOfFunction(original), reinterpret_cast<void*>(&CallModule),
                               kMethFastcall | kMethKeywords, nullptr};
  PyObject* const descriptor = g_python.PyDescr_NewMethod(type, &method);
  if (descriptor == nullptr) g_python.PyErr_Clear();
  return descriptor;
}

PyObject* WatchRoots(PyObject*, PyObject* begins) {
  const bool wanted = begins != g_python._Py_NoneStruct;
  if (wanted && g_python.PyObject_Vectorcall == nullptr) return None();
  g_python.Py_IncRef(begins);  // kept for good: it may be at work
  g_call.root_begins = wanted ? begins : nullptr;
  return None();
}

PyObject* RootBegins(PyObject*, PyObject* module) {
  if (g_call.root_begins != nullptr && IsAtRoot()) Tell(g_call.root_begins, module);
  return None();
}

void NameModule(const PyObject* module, ArenaRef name) {
  LineOf(module) = {};
  ModuleNames()[module] = name;
}

void ForgetModule(const PyObject* module) {
  LineOf(module) = {};
  ModuleNames().erase(module);
}

}  // namespace ranktap::agent

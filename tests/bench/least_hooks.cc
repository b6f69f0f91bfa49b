// Functions in the places of the agent's in a PyTorch program that do nothing but call what they
// stand for, or write a range around it besides: a clock reading and 48 and 24 bytes, into memory
// that nobody reads. The least that anybody who records the same could do. torch_turns.py loads it.
#include <x86intrin.h>

#include <array>
#include <cstring>

#include "agent/sources/torch/python_functions.h"

using ranktap::agent::CallAsMethod;
using ranktap::agent::g_python;
using ranktap::agent::kMethFastcall;
using ranktap::agent::kMethKeywords;
using ranktap::agent::None;
using ranktap::agent::PyMethodDef;
using ranktap::agent::PyObject;

namespace {

constexpr int kFlags = kMethFastcall | kMethKeywords;

bool g_writes = false;
size_t g_at = 0;
alignas(64) std::array<std::byte, size_t{4} << 20> g_ring;

template <size_t kBytes>
void Write(const void* what) {
  if (!g_writes) return;
  std::array<uint64_t, kBytes / 8> event{kBytes, __rdtsc(), reinterpret_cast<uint64_t>(what)};
  std::memcpy(&g_ring[g_at], event.data(), kBytes);
  g_at = (g_at + kBytes) % (g_ring.size() - 64);
}

// What each calls.
PyObject *g_module, *g_backward, *g_enter, *g_exit;

PyObject* CallModule(PyObject* self, PyObject* const* arguments, intptr_t count, PyObject* names) {
  Write<48>(self);
  PyObject* const result = CallAsMethod(g_module, self, arguments, count, names);
  Write<24>(self);
  return result;
}

PyObject* CallBackward(PyObject*, PyObject* const* arguments, intptr_t count, PyObject* names) {
  Write<56>(arguments);
  PyObject* const result =
      g_python.PyObject_Vectorcall(g_backward, arguments, static_cast<size_t>(count), names);
  Write<24>(arguments);
  return result;
}

PyObject* CallEnter(PyObject* self, PyObject* const* arguments, intptr_t count, PyObject* names) {
  Write<48>(self);
  return CallAsMethod(g_enter, self, arguments, count, names);
}

PyObject* CallExit(PyObject* self, PyObject* const* arguments, intptr_t count, PyObject* names) {
  PyObject* const result = CallAsMethod(g_exit, self, arguments, count, names);
  Write<24>(self);
  return result;
}

PyObject* Before(PyObject* self, PyObject* const*, intptr_t) {
  Write<48>(self);
  return None();
}

// The optimizer's phase and the step end, and the next step begins.
PyObject* After(PyObject* self, PyObject* const*, intptr_t) {
  Write<24>(self);
  Write<24>(self);
  Write<56>(self);
  return None();
}

template <typename Function>
PyMethodDef Define(const char* name, Function function, int flags) {
  return {name, reinterpret_cast<void*>(function), flags, nullptr};
}

void Keep(PyObject*& place, PyObject* original) {
  g_python.Py_IncRef(original);
  place = original;
}

}  // namespace

#define SHOWN extern "C" __attribute__((visibility("default")))

// With the interpreter's lock, once each; a new reference. First Load: 1, this CPython has it all.
SHOWN int Load() {
  return g_python.Load() && g_python.PyDescr_NewMethod != nullptr &&
         g_python.PyObject_Vectorcall != nullptr && g_python.PyTuple_Size != nullptr;
}
SHOWN PyObject* ModuleCall(PyObject* type, PyObject* original) {
  static PyMethodDef method = Define("_wrapped_call_impl", &CallModule, kFlags);
  Keep(g_module, original);
  return g_python.PyDescr_NewMethod(type, &method);
}
SHOWN PyObject* BackwardCall(PyObject* original) {
  static PyMethodDef method = Define("_engine_run_backward", &CallBackward, kFlags);
  Keep(g_backward, original);
  return g_python.PyCFunction_NewEx(&method, nullptr, nullptr);
}
SHOWN PyObject* EnterCall(PyObject* type, PyObject* original) {
  static PyMethodDef method = Define("__enter__", &CallEnter, kFlags);
  Keep(g_enter, original);
  return g_python.PyDescr_NewMethod(type, &method);
}
SHOWN PyObject* ExitCall(PyObject* type, PyObject* original) {
  static PyMethodDef method = Define("__exit__", &CallExit, kFlags);
  Keep(g_exit, original);
  return g_python.PyDescr_NewMethod(type, &method);
}
SHOWN PyObject* BeforeStep() {
  static PyMethodDef method = Define("before_step", &Before, kMethFastcall);
  return g_python.PyCFunction_NewEx(&method, nullptr, nullptr);
}
SHOWN PyObject* AfterStep() {
  static PyMethodDef method = Define("after_step", &After, kMethFastcall);
  return g_python.PyCFunction_NewEx(&method, nullptr, nullptr);
}
SHOWN void SetWrites(int writes) { g_writes = writes != 0; }

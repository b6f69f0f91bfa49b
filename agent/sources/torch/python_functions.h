// How a function of ours becomes one of Python's: contained, since CPython's frames are C. And how
// one of ours that stands in a class for one of the program's calls that.
// Runs on: threads that hold the interpreter's lock.  May not: let an exception of ours leave.
#pragma once

#include <cstdint>

#include "agent/core/contain.h"
#include "agent/sources/torch/python_api.h"

namespace ranktap::agent {

namespace python_functions {

// None where ours failed: the callers in Python are guarded (guard.py).
template <auto kFunction, typename... Arguments>
PyObject* CallContained(Arguments... arguments) {
  PyObject* const result =
      Contain(static_cast<PyObject*>(nullptr), [&] { return kFunction(arguments...); });
  return result != nullptr || g_python.PyErr_Occurred() != nullptr ? result : None();
}

template <auto kFunction, typename... Arguments>
constexpr auto Contained(PyObject* (*)(Arguments...)) {
  return &CallContained<kFunction, Arguments...>;
}

}  // namespace python_functions

PyObject* CallAsMethodWithMany(PyObject* original, PyObject* self, PyObject* const* arguments,
                               intptr_t count, PyObject* keywords);

// Calls `original` as a method of `self`. Needs PyObject_Vectorcall and PyTuple_Size.
// A frame of the few lines that it needs: what lies apart on the stack is out of the cache when a
// module's forward returns, and that was a tenth of what its range cost. By cases, since GCC makes
// `rep movs` of a loop.
inline PyObject* CallAsMethod(PyObject* original, PyObject* self, PyObject* const* arguments,
                              intptr_t count, PyObject* keywords) {
  if (count > 3 || keywords != nullptr) [[unlikely]]
    return CallAsMethodWithMany(original, self, arguments, count, keywords);
  PyObject* all[4];
  all[0] = self;
  switch (count) {
    case 3:
      all[3] = arguments[2];
      [[fallthrough]];
    case 2:
      all[2] = arguments[1];
      [[fallthrough]];
    case 1:
      all[1] = arguments[0];
      [[fallthrough]];
    default:
      break;
  }
  return g_python.PyObject_Vectorcall(original, all, static_cast<size_t>(count) + 1, nullptr);
}

template <auto kFunction>
PyMethodDef Define(const char* name, int flags) {
  return {name, reinterpret_cast<void*>(python_functions::Contained<kFunction>(kFunction)), flags,
          nullptr};
}

}  // namespace ranktap::agent

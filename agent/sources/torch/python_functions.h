// How a function of ours becomes one of Python's: contained, since CPython's frames are C.
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

template <auto kFunction>
PyMethodDef Define(const char* name, int flags) {
  return {name, reinterpret_cast<void*>(python_functions::Contained<kFunction>(kFunction)), flags,
          nullptr};
}

}  // namespace ranktap::agent

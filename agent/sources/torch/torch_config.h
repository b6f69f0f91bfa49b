// The settings that our Python files heed: they do not read the environment themselves.
// Runs on: threads that hold the interpreter's lock.  May not: raise a Python exception.
#pragma once

#include "agent/sources/torch/python_api.h"

namespace ranktap::agent {

// config() -> a new {name: text or number}. The defaults while the agent does not run.
PyObject* ConfigForPython(PyObject*, PyObject*);

}  // namespace ranktap::agent

// Functions for our Python sources: ranges and marks straight into the ring, without a Python
// object made in steady state.
// Runs on: threads that hold the interpreter's lock.  May not: raise a Python exception.
#pragma once

#include "agent/sources/torch/python_api.h"

namespace ranktap::agent {

// A new dict of the functions and of torch_marks.h by name; nullptr with an exception set.
PyObject* MakeTorchFunctions();

}  // namespace ranktap::agent

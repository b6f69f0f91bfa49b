// The two methods of record_function as functions of ours around PyTorch's own. A callback at
// at::RecordFunction would see every label, but PyTorch copies its list of callbacks twice at each
// node of the backward pass: 0.11 us a node where there is one.
// Runs on: threads that hold the interpreter's lock.  May not: raise an exception of its own.
#pragma once

#include "agent/sources/torch/python_api.h"

namespace ranktap::agent {

// Python function label_call(class, original, 1: it ends a label) -> a new method of the class that
// calls `original` with the same arguments, and begins or ends a label named by the object's
// `name`. None: this CPython lacks what it needs. Kept for good.
PyObject* NewLabelCall(PyObject*, PyObject* const* arguments, intptr_t count);

}  // namespace ranktap::agent

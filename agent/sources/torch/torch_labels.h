// Labels of record_function, in windows and outside: a range for each, on its thread, from a
// callback at at::RecordFunction that is asked about the user's scope alone, so that operators cost
// what they cost without it.
// Runs on: WatchLabels, IgnoreLabels: threads that hold the interpreter's lock; the callbacks on
// any thread.
// May not: in a callback allocate, wait, log, call Python.
#pragma once

#include "agent/sources/torch/python_api.h"

namespace ranktap::agent {

// Python functions. watch_labels(): labels are seen from now on.
PyObject* WatchLabels(PyObject*, PyObject*);
// ignore_labels(): none are, until watch_labels() again. Those that are open end all the same.
PyObject* IgnoreLabels(PyObject*, PyObject*);
// record_labels(domain) -> 1: this process records. Labels that are open on this thread already
// begin when they began. 0: this PyTorch shows no labels.
PyObject* RecordLabels(PyObject*, PyObject* domain);

}  // namespace ranktap::agent

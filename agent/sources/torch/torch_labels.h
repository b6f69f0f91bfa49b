// Labels of record_function, in windows and outside: a range for each, on its thread, from a
// callback at at::RecordFunction that is asked about the user's scope alone, so that operators cost
// what they cost without it.
// Runs on: WatchLabels, RecordLabels: threads that hold the interpreter's lock; EndTimeOfLabels:
// the sender thread; the callbacks: any thread. May not: in a callback allocate, wait, log, call
// Python.
#pragma once

#include "agent/sources/torch/python_api.h"

namespace ranktap::agent {

// Python functions. watch_labels(): labels are seen from now on, also while nothing is recorded,
// since they may be open as recording begins.
PyObject* WatchLabels(PyObject*, PyObject*);
// record_labels(domain) -> 1: this process records. Labels that are open already, on this thread,
// have a range: since they began, or since recording did where it was off before. 0: this PyTorch
// shows no labels.
PyObject* RecordLabels(PyObject*, PyObject* domain);

// Recording is off: what is open goes on in another range, as soon as it is on again.
void EndTimeOfLabels();

}  // namespace ranktap::agent

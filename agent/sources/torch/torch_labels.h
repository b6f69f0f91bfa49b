// Labels of record_function, in windows and outside: a range for each, on its thread. They come
// from record_function's own methods (torch_label_calls.h), or from a callback at
// at::RecordFunction that is asked about the user's scope alone. Runs on: WatchLabels,
// RecordLabels, ExpectLabels: threads that hold the interpreter's lock; EndTimeOfLabels: the sender
// thread; the rest: any thread. May not: in the rest allocate, wait, log, call Python.
#pragma once

#include "agent/sources/torch/python_api.h"

namespace ranktap::agent {

// BeginLabel and EndLabel will be called.
void ExpectLabels();
// A label begins and ends on this thread, also while nothing is recorded, since it may be open as
// recording begins. `label` is the same in both, and whatever nests in it ends before. The name is
// read at once.
void BeginLabel(const void* label, const char* name);
void EndLabel(const void* label);

// Python functions. watch_labels(): a callback sees labels from now on, where neither of these two
// is called. It takes 0.11 us of each node of the backward pass.
PyObject* WatchLabels(PyObject*, PyObject*);
// record_labels(domain) -> 1: this process records. Labels that are open already, on this thread,
// have a range: since they began, or since recording did where it was off before. 0: this PyTorch
// shows no labels.
PyObject* RecordLabels(PyObject*, PyObject* domain);

// Recording is off: what is open goes on in another range, as soon as it is on again.
void EndTimeOfLabels();

}  // namespace ranktap::agent

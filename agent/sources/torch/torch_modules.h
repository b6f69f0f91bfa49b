// torch.nn.Module.__call__ as a function of ours around PyTorch's own: global hooks take PyTorch
// through the slow way of its call, 1.5 us before they have done anything.
// Runs on: threads that hold the interpreter's lock.  May not: raise an exception of its own.
#pragma once

#include "agent/core/writer.h"
#include "agent/sources/torch/python_api.h"
#include "proto/events.h"

namespace ranktap::agent {

// A new method of the class `type` that calls `original` with the same arguments, with a range
// around it. `first_seen(module)` is asked about a module that has no name yet and names it;
// `root_done(output)` hears of what a root returned. All are kept for good. nullptr: this CPython
// lacks what it needs; no exception is set.
PyObject* MakeModuleCall(PyObject* type, PyObject* original, PyObject* first_seen,
                         PyObject* root_done);

// It made one.
bool HasModuleCall();

// Python functions. watch_roots(begins): `begins(module)` is called before each root that is
// recorded; None: no longer. root_begins(module): a named module is about to run.
PyObject* WatchRoots(PyObject*, PyObject* begins);
PyObject* RootBegins(PyObject*, PyObject* module);

// The name of its ranges from now on; 0: it has none.
void NameModule(const PyObject* module, proto::ArenaRef name);
// It is gone: another may get its address.
void ForgetModule(const PyObject* module);

// A call of the module: a range, where it has a name and is recorded. `begun` is what BeginCall
// said, the thread or nullptr; `result`: nullptr where the call raised.
ThreadState* BeginCall(PyObject* module);
void EndCall(PyObject* module, ThreadState* begun, PyObject* result);

// The module whose step this thread runs, which Lightning calls past the module's __call__ or with
// it, and how many of its calls the thread is inside of. A step that calls its own module is one
// forward with it.
struct SteppedModule {
  const PyObject* module = nullptr;  // nullptr: none
  uint32_t calls = 0;
};
// -> the one before.
SteppedModule SetSteppedModule(SteppedModule next);
// A call begins or ends on this thread. False: it is inside of the same module's step, and has no
// range.
bool EnterCall(const PyObject* module);
bool LeaveCall(const PyObject* module);

// This thread records, and is inside of no module.
bool IsAtRoot();

// The domain of its ranges from now on.
void SetModuleDomain(proto::ArenaRef domain);

// For hooks in Python: a module's forward begins and ends on this thread; EndModule -> it was a
// root.
void BeginModule(proto::ArenaRef name);
bool EndModule();

}  // namespace ranktap::agent

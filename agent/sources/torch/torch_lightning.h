// The steps of a LightningModule (training_step and its like), which Lightning's Strategy calls
// past the module's
// __call__ where nothing wraps it: such a step is a call of the module.
// Runs on: threads that hold the interpreter's lock.  May not: raise an exception of its own.
#pragma once

#include "agent/sources/torch/python_api.h"

namespace ranktap::agent {

// step_call(original) -> a method that calls `original(strategy, ...)`, a step of the Strategy's
// module, with a range of the module's around where the Strategy calls the step itself. It is in no
// traceback. None: not in this Python, or Module.__call__ is not ours. Kept for good.
PyObject* NewStepCall(PyObject*, PyObject* original);

}  // namespace ranktap::agent

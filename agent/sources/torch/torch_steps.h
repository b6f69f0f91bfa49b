// The hooks of an optimizer's step that PyTorch calls. While nothing is recorded they count steps
// and go no further: our Python functions would take 30 us of each. Runs on: threads that hold the
// interpreter's lock.  May not: raise, allocate, lock.
#pragma once

#include "agent/sources/torch/python_api.h"

namespace ranktap::agent {

// A module ran, recorded or not.
void NoteForward();

// Python functions on_steps(before, after) -> 1: set, kept for good; 0: this CPython cannot.
PyObject* OnSteps(PyObject*, PyObject* const* arguments, intptr_t count);
// The hooks: (optimizer, arguments, keywords). They call the functions of on_steps with the
// optimizer.
PyObject* BeforeStep(PyObject*, PyObject* const* arguments, intptr_t count);
PyObject* AfterStep(PyObject*, PyObject* const* arguments, intptr_t count);
// begin_steps(domain, name of steps, domain of phases, name of the optimizer's), once.
PyObject* BeginSteps(PyObject*, PyObject* const* arguments, intptr_t count);
// open_step(number): its range begins. close_step() -> the number of the one that ends.
PyObject* OpenStep(PyObject*, PyObject* number);
PyObject* CloseStep(PyObject*, PyObject*);
// step_number() -> of the one that runs.
PyObject* StepNumber(PyObject*, PyObject*);
// plain_steps(until, a dictionary or None, another, that of torch.cuda): steps are counted and
// their ranges drawn without a call of `after` until the one with this number begins, either
// dictionary has another size, or CUDA came.
PyObject* SetPlainSteps(PyObject*, PyObject* const* arguments, intptr_t count);
// look_at_next_step(): the end of this step is told after all.
PyObject* LookAtNextStep(PyObject*, PyObject*);
// last_optimizer(id): of several the one with which an iteration ends.
PyObject* SetLastOptimizer(PyObject*, PyObject* optimizer);
// wake_by(function) -> 1: it is called, on the main thread, as soon as something is recorded again;
// until then modules are not seen, and each step of the last optimizer ends a step. 0: not with
// this CPython. wake_by(None): no longer.
PyObject* WakeBy(PyObject*, PyObject* function);
void WakePython();
// ends_step() -> 1: modules ran since the last step, or none ever did.
PyObject* EndsStep(PyObject*, PyObject*);
// skipped_steps() -> how many ended since the last call without `after` being called.
PyObject* TakeSkippedSteps(PyObject*, PyObject*);

}  // namespace ranktap::agent

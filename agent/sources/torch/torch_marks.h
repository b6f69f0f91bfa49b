// proto/framework_marks.h for our Python files.
// Runs on: threads that hold the interpreter's lock.  May not: be called after an exception.
#pragma once

#include "agent/sources/torch/python_api.h"

namespace ranktap::agent {

// Puts each of its constants into the dict by name. False: an exception is set.
[[nodiscard]] bool AddMarks(PyObject* dict);

}  // namespace ranktap::agent

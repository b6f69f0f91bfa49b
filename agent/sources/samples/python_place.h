// CPython in this process.
// Runs on: the starting thread.  May not: call into CPython, but for its version's text.
#pragma once

#include "proto/python_layout.h"

namespace ranktap::agent::samples {

// Runtime 0: there is none.
proto::PythonPlace FindPythonPlace();

}  // namespace ranktap::agent::samples

// The way into Python: an audit hook that is there before the interpreter starts, sees `import
// torch`, and has our Python sources (agent/sources/torch/python/, embedded) run. A program that
// never imports torch pays one string comparison for each audited event. Runs on: the loader
// (InstallPythonInjection); then threads that hold the interpreter's lock. May not: in the loader
// allocate or make system calls; ever raise a Python exception.
#pragma once

#include <cstdint>

namespace ranktap::agent {

// The functions of the lifecycle that the injection needs.
struct PythonInjection {
  bool hooks_torch = false;  // at `import torch`
  // The agent starts where Python begins to run the program, if `ranktap run` started that itself.
  bool starts_with_program = false;
  bool (*start)();         // the agent in this process; StartOnce
  void (*refresh_rank)();  // the program may have learnt its rank
  void (*tell_rank)(uint32_t rank, uint32_t world_size);
};

// Does nothing where there is no CPython in the process.
void InstallPythonInjection(const PythonInjection& injection);

// The argument of InstallPythonInjection.
const PythonInjection& InstalledPythonInjection();

}  // namespace ranktap::agent

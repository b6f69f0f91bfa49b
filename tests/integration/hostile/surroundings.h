// Commands that run another one where a profiler may not expect to be. Each ends with 77, and says
// why on stderr, where this machine has no such place.
#pragma once

#include "tests/integration/hostile/differential_run.h"

namespace ranktap::hostile_test {

Command InAnotherPidNamespace(const Command& command);
// In a group of its own of cgroup v2, with 64 MiB of memory where that controller is.
Command InACgroupOfVersion2(const Command& command);
// Somebody sets the clock of the day all the time.
Command WithSteppingClock(const Command& command);
// Any program makes an NVTX call at its start, and so does each that it starts.
Command WithNvtxAtStart(const Command& command);
// 9 where anything may be lost.
Command UnderValgrind(const Command& command);
// Stopped by SIGSTOP for so long, as soon as it has begun to print.
Command Stopped(const Command& command, int seconds);
// Every place of its own for files and rings fails with EIO; what it prints is printed.
Command WithoutAFileThatWorks(const Command& command);
// A program of tests/python/programs, where PyTorch is installed.
Command PyTorch(const Command& program);

}  // namespace ranktap::hostile_test

// How our threads leave a process that goes on without them, or that waits for them to go.
//
// A program whose main thread leaves by pthread_exit ends with its last thread; so it must not be
// one of ours that is last. And a program that gives up system calls may be ended for one of ours.
// Runs on: the sender (ProgramHasLeft, ExitAsLastThread), a thread of the program (the others).
// May not: run in a hook in steady state.
#pragma once

#include <cstdint>

namespace ranktap::agent {

// Whether main has left and only threads of ours are still there. Looks at /proc every 50 ms; false
// where /proc does not tell.
bool ProgramHasLeft();

// After that: ends the process as the last thread of the program would have. The calling thread of
// ours must return soon.
void ExitAsLastThread();

// Asks our threads to end, and takes that back. ThreadsMayRun is what each asks before its rounds.
void PauseThreads();
void ResumeThreads();
bool ThreadsMayRun();

// Whether the program has but one thread.
bool ProgramIsAlone();

}  // namespace ranktap::agent

// How our threads leave a process that goes on without them, or that waits for them to go.
//
// A program whose main thread leaves by pthread_exit ends with its last thread; so it must not be
// one of ours that is last. And a program that gives up system calls may be ended for one of ours.
// Runs on: the sender (ProgramHasLeft, ExitAsLastThread), a thread of the program (the others); in
// a fork child StopWatchingProgramInForkChild. May not: run in a hook in steady state.
#pragma once

#include <cstdint>

namespace ranktap::agent {

// Opens what tells of the main thread. Once, before there is a thread of ours.
void WatchProgram();
void StopWatchingProgramInForkChild();

// Whether main has left and only threads of ours are still there. Looks every 50 ms; false where
// /proc was not there at the start.
bool ProgramHasLeft();

// The sources' last events, each whatever the others do.
void FinishSources(uint64_t deadline_ns);

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

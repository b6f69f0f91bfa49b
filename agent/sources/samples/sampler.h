// The agent's third thread: looks at all Python threads of the process every few milliseconds, from
// its memory, with no lock, no signal and no call into Python. It is made with the others and
// parked while nothing is recorded. It takes at most 1 % of a core, and another for the processes
// that this one started: a look that takes longer is followed by a longer pause. Runs on: see each
// function.  May not: keep a process alive, make one a rank that has made no other event.
#pragma once

#include "agent/core/cost_fields.h"
#include "agent/sources/source.h"

namespace ranktap::agent {

// Makes the thread where sampling is on (RANKTAP_SAMPLE_US) and the process has CPython. Runs on:
// the starting thread.
void StartSampler();

// Runs on: the sender.
void SetSampleLevel(proto::Level level, proto::GapReason reason);
void AddSampleCost(CostFields& cost);

// Runs on: the exiting thread; a thread of the program.
void FinishSamples(uint64_t deadline_ns);
void PauseSampler();
void ResumeSampler();

// Runs on: the forking thread, in the child.
void CloseSamplerInForkChild();

}  // namespace ranktap::agent

// PyTorch's own record of the last collectives, its Flight Recorder, for a collector that takes the
// job for hung. Runs on: DumpFlightRecorder on the sender, FinishFlight on the exiting thread; the
// dump on ranktap-flight, a thread of ours that begins with the request and ends with the answer.
// May not: hold the interpreter's lock, or want it.
#pragma once

#include <cstdint>

namespace ranktap::agent {

// Announces what the recorder holds, a backend after the other, then the last part. Not even that
// where PyTorch, CUDA or the loader does not let go of the thread: it is lost then, and later
// requests are turned away.
void DumpFlightRecorder(uint64_t request);

// As Source::finish: PyTorch's own globals are about to go.
void FinishFlight(uint64_t deadline_ns);

}  // namespace ranktap::agent

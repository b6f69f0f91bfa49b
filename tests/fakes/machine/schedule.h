// Work meets time: a stream takes work in order; start and end are fixed when it is submitted, and
// whoever waits sleeps until then.
#pragma once

#include <cuda.h>

#include "tests/fakes/machine/context.h"

namespace ranktap::standin {

// Gives the stream work, or adds it to the graph the stream is captured into. `finished_ns`, where
// not null, becomes the end of the work (0 when captured). May wait while 1024 works are
// outstanding.
CUresult Submit(Stream* stream, Work work, uint64_t* finished_ns = nullptr);

// Fills times, ids and serial of `work` for a start on `stream` no earlier than `earliest_ns`;
// arranges its effect. Under the machine's lock. Returns the end.
uint64_t Place(const Stream& stream, uint64_t earliest_ns, Work& work);

CUresult RecordEvent(Stream* stream, Event* event);
CUresult WaitEvent(Stream* stream, Event* event);

// Host waits; each announces itself as a synchronisation.
CUresult SynchronizeStream(Stream* stream);
CUresult SynchronizeContext(Context* context);
CUresult SynchronizeEvent(Event* event);
// Sleeps until the moment and until host functions due by then have returned.
void HostWait(uint64_t until_ns);
bool ReachedByNow(uint64_t moment_ns);

// Whether a capture forbids what would wait for, or touch, the whole context.
bool AnyCapture(const Context& context);

}  // namespace ranktap::standin

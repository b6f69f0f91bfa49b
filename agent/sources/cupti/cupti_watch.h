// How long the call into CUPTI lasts that a thread of ours is inside of: CUPTI's release notes name
// deadlocks (13.0 U1: in cuptiActivityDisable), and we would fall silent without a word.
// Runs on: Watch on the arming thread before any other call, NoteHang on the sender and the exiting
// thread.  May not: call CUPTI.
#pragma once

#include "agent/sources/cupti/cupti_api.h"

namespace ranktap::agent::cupti {

// Puts a function of ours before each that starts, changes, flushes or ends a session; the others
// are left as they are. Once a process.
void WatchCalls(Api& api);

// Announces a note, once for each function, if a call of it lasts longer than 5 s by now.
void NoteHang();

}  // namespace ranktap::agent::cupti

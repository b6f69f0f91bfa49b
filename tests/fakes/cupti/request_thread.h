// A thread of CUPTI's own that asks the client for buffers (WORKER_RECORDS).
#pragma once

namespace ranktap::standin {

// Calls `ask` with `argument` on it, and returns when that has returned.
void AskOnOwnThread(void (*ask)(void* argument), void* argument);

}  // namespace ranktap::standin

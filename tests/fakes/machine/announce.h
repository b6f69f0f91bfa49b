// Tells the truth log and the listening tool what happened. To be called without the machine's
// lock: a tool may take its time.
#pragma once

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

void Announce(const Operation& operation);
void Announce(const Synchronization& synchronization);
void Announce(const EventRecord& record);
void Announce(const MemoryOperation& memory);
void Announce(const PoolOperation& pool);
void Announce(const Resource& resource);
void Announce(const Overhead& overhead);
void Announce(const Compilation& compilation);

}  // namespace ranktap::standin

// The functions behind MachineHooks(), by the file that has them.
#pragma once

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

// api_callbacks.cc
void OnEnter(ApiCall& call);
void OnExit(ApiCall& call);
// device_records.cc
void OnOperation(const Operation& operation);
// host_records.cc
void OnSynchronization(const Synchronization& synchronization);
void OnEventRecord(const EventRecord& record);
void OnMemory(const MemoryOperation& memory);
void OnPool(const PoolOperation& pool);
void OnOverhead(const Overhead& overhead);
void OnCompilation(const Compilation& compilation);
// hardware_events.cc
void TellOfHardwareEvents();
// resource_records.cc
void OnResource(const Resource& resource);
void WriteDeviceRecords();
void WriteContextRecord(const Resource& resource);
void WriteStreamRecord(const Resource& resource);

}  // namespace ranktap::standin

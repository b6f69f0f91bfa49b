// The functions of the one libcupti of this process, looked up by name: nothing is linked.
// Runs on: the thread inside cuInit (Load), any thread (the calls).  May not: open a second copy of
// CUPTI: two copies fight over the driver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/sources/cupti/cupti_abi.h"

namespace ranktap::agent::cupti {

using Subscriber = void*;
using CallbackFunction = void (*)(void* user, uint32_t domain, uint32_t cbid, const void* data);
using BufferRequested = void (*)(uint8_t** buffer, size_t* bytes, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                                 size_t valid_bytes);

struct Api {
  Result (*GetVersion)(uint32_t*);
  Result (*Subscribe)(Subscriber*, CallbackFunction, void*);
  Result (*Unsubscribe)(Subscriber);
  Result (*EnableCallback)(uint32_t enable, Subscriber, uint32_t domain, uint32_t cbid);
  Result (*GetCallbackName)(uint32_t domain, uint32_t cbid, const char** name);
  Result (*ActivityRegisterCallbacks)(BufferRequested, BufferCompleted);
  Result (*ActivityEnable)(uint32_t kind);
  Result (*ActivityDisable)(uint32_t kind);
  Result (*ActivityFlushAll)(uint32_t flag);
  Result (*ActivityGetNextRecord)(uint8_t* buffer, size_t valid_bytes, Record** record);
  Result (*ActivityGetNumDroppedRecords)(void* context, uint32_t stream, size_t* dropped);
  Result (*ActivitySetAttribute)(int attribute, size_t* bytes, void* value);
  Result (*ActivityGetAttribute)(int attribute, size_t* bytes, void* value);
  Result (*GetContextId)(void* context, uint32_t* id);
  Result (*GetDeviceId)(void* context, uint32_t* id);
  Result (*GetStreamIdEx)(void* context, void* stream, uint8_t per_thread, uint32_t* id);
  // The rest may be nullptr: older libraries have no such function.
  Result (*ActivityEnableAndDump)(uint32_t kind);
  Result (*SetThreadIdType)(uint32_t type);
  Result (*GetThreadIdType)(uint32_t* type);
  Result (*GetGraphId)(void* graph, uint32_t* id);
  Result (*GetGraphNodeId)(void* node, uint64_t* id);
  Result (*GetGraphExecId)(void* exec, uint32_t* id);
  Result (*ActivityEnableRuntimeApi)(uint32_t cbid, uint8_t enable);
  Result (*ActivityEnableDriverApi)(uint32_t cbid, uint8_t enable);
  Result (*ActivityEnableHWTrace)(uint8_t enable);
};

struct LoadedApi {
  Api api{};
  uint32_t version = 0;
  std::string path;
  std::string failure;  // not empty: there is no API, for this reason
  // By the exports or the soname, and not by CUPTI's own word.
  bool version_is_guess = false;
  bool was_mapped = false;  // the program has brought it
  bool deadly = false;      // no function of it may be called before a trial (proto/cupti_trial.h)

  bool ok() const { return failure.empty(); }
  bool AtLeast(uint32_t wanted) const { return version >= wanted; }
};

// Finds libcupti: `preferred` if given; the copy that is mapped; beside the program's cudart; the
// toolkit's usual places. Refuses a major version that this build does not know.
LoadedApi LoadApi(const std::string& preferred);

// Asks a version that is a guess again: 13.3 and later do not say it before a subscription has
// brought them up. False: they cannot be asked now; a version that is still a guess afterwards,
// they do not say at all.
bool AskVersionAgain(LoadedApi& loaded, CallbackFunction callback);

// libcuda's own words about itself; empty or 0 where it says nothing.
struct DriverFacts {
  int version = 0;         // 13000 is 13.0
  bool simulated = false;  // a stand-in, by its marker symbol
  std::string path;
};
DriverFacts ReadDriverFacts();

// cuDeviceGetAttribute and cuDeviceGetPCIBusId, which need no context; 0 and empty on failure.
uint64_t DeviceAttribute(uint32_t device, int attribute);
std::string DevicePciBus(uint32_t device);

}  // namespace ranktap::agent::cupti

// The one subscriber, what it wants to hear, and the state every activity record depends on. With
// the second API it is none, and `wanted` and `kind_enabled` are what any of the several wants.
//
// Read on every traced call without a lock; changed under one.
#pragma once

#include <cupti.h>

#include <atomic>
#include <cstdint>

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

inline constexpr uint32_t kMostCallbackIds = 1024;
inline constexpr uint32_t kMostKinds = 128;

struct Subscription {
  std::atomic<CUpti_CallbackFunc> callback{nullptr};
  std::atomic<void*> userdata{nullptr};
  std::atomic<uint8_t> wanted[CUPTI_CB_DOMAIN_SIZE][kMostCallbackIds];
  std::atomic<int> callbacks_running{0};
  std::atomic<int> count{0};  // of subscriptions so far

  std::atomic<bool> kind_enabled[kMostKinds];
  std::atomic<bool> graphs_whole{false};   // from the first GRAPH_TRACE on, for good
  std::atomic<bool> second_api{false};     // somebody has used it
  std::atomic<uint32_t> api_kinds_off{0};  // how often RUNTIME or DRIVER went off
  // Per callback id: 0 as the kind, 1 on by itself, 2 off by itself.
  std::atomic<uint8_t> api_record[CUPTI_CB_DOMAIN_SIZE][kMostCallbackIds];
  std::atomic<bool> latency_timestamps{false};
  std::atomic<bool> all_sync_records{false};
  std::atomic<bool> event_device_timestamps{false};
  std::atomic<CUpti_ActivityThreadIdType> thread_id_type{CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT};
};

Subscription& TheSubscription();
bool KindEnabled(CUpti_ActivityKind kind);
bool AnyKindEnabled();
// What a graph that is made now has to say of its nodes later: a graph that was made while RUNTIME
// or DRIVER was on stops to when one of them goes off (PyTorch's _cuspy/core.py); under
// OLD_GRAPHS=silent one that was made while no kernels were recorded never does.
uint32_t MarkNewGraph();
bool TellsOfNodes(uint32_t mark);
// Whether a call leaves an API record.
bool ApiRecordWanted(ApiDomain domain, uint32_t cbid);
// The correlation id a tool sees: the machine's, or 0 under RANKTAP_STANDIN_CORRELATION=api-kinds
// while no API record is collected for the call.
uint32_t VisibleCorrelation(uint32_t correlation, ApiDomain domain, uint32_t cbid);
uint32_t RecordThreadId();

// What cuptiFinalize does to the subscription and the kinds.
void ForgetSession();
// Tells the machine to call us, once. False without a machine.
bool ListenToMachine();
void Raise(CUpti_CallbackDomain domain, uint32_t cbid, const void* data);
// The id this CUPTI has for a call of the machine, which is of the newest version: a launch that
// nvcc 13 compiled to __cudaLaunchKernel is cudaLaunchKernel before 13.
uint32_t CallbackIdOf(ApiDomain domain, uint32_t cbid);
bool Wanted(CUpti_CallbackDomain domain, uint32_t cbid);

}  // namespace ranktap::standin

// Hooks on the program's CUPTI calls.
// Runs on: the program's threads.  May not: be slow outside a session's start and end.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string>

#include "agent/sources/cupti/cupti_broker.h"
#include "agent/sources/cupti/cupti_client_clock.h"
#include "agent/sources/cupti/cupti_client_session.h"
#include "agent/sources/cupti/cupti_second_api.h"

namespace ranktap::agent::cupti {
namespace {

void Note(uint32_t kind, bool enabled) {
  if (kind >= kKinds) return;
  const std::lock_guard lock(g_client->mutex);
  g_client->kinds.set(kind, enabled);
  if (kind == static_cast<uint32_t>(Kind::kGraphTrace)) g_client->took_graphs_whole |= enabled;
}

// Also where the agent has gone quiet: what the client has from the broker stays good.
bool HasItFromBroker(Subscriber subscriber) {
  return InOwnProcess() && broker::IsClients(subscriber);
}

bool OursAreOn() {
  {
    const std::lock_guard lock(g_client->mutex);
    if (g_client->active) return false;
  }
  return !InForkChild() && g_client->duties.holds();
}

Result HookSubscribe(Subscriber* subscriber, CallbackFunction callback, void* user) {
  // Refused, as without us.
  if (!InOwnProcess() || second_api::IsOn()) {
    return g_real.Subscribe(subscriber, callback, user);
  }
  return broker::SubscribeClient(subscriber, callback, user);
}

// The second API, from 13.2 on: of several subscribers or of one, with records of the client's own
// shape. After it CUPTI takes no client of the first API in this process. Where the client lets
// others subscribe, we may be one of them; else our kinds must be off.
Result HookSubscribeV2(Subscriber* subscriber, CallbackFunction callback, void* user,
                       void* parameters) {
  if (!InOwnProcess()) return g_real.SubscribeV2(subscriber, callback, user, parameters);
  const bool is_shared = second_api::IsThere() && second_api::AllowsOthers(parameters);
  if (!is_shared) {
    Quietly([] { BeforeSecondApi("cuptiSubscribe_v2"); });
  } else if (!second_api::IsOn()) {
    Quietly([] { BeforeSharedApi("cuptiSubscribe_v2"); });
  }
  const Result result = g_real.SubscribeV2(subscriber, callback, user, parameters);
  if (is_shared) Quietly([result] { AfterSharedApi(result == kSuccess); });
  return result;
}

// The client's calls that concern nobody else pass where we are a subscriber beside it.
void BeforeCallOfSecondApi(const char* call) {
  if (InOwnProcess() && !second_api::IsOn()) Quietly([call] { BeforeSecondApi(call); });
}

// While no kind is on, of anybody: we are off as long as the call lasts.
template <typename Body>
Result WhileNoKindIsOn(const char* call, Body&& body) {
  if (!InOwnProcess() || !second_api::IsOn() || !WhyClientStays().empty()) {
    BeforeCallOfSecondApi(call);
    return body();
  }
  Quietly([call] { BeforeSharedApi(call); });
  const Result result = body();
  Quietly([] { AfterSharedApi(true); });
  return result;
}

Result HookActivitySetAttributeV2(Subscriber subscriber, int attribute, size_t* bytes,
                                  void* value) {
  const auto set = [=] {
    return g_real.ActivitySetAttributeV2(subscriber, attribute, bytes, value);
  };
  constexpr const char* kCall = "cuptiActivitySetAttribute_v2";
  if (second_api::IsOfAll(attribute)) return WhileNoKindIsOn(kCall, set);
  BeforeCallOfSecondApi(kCall);
  return set();
}

Result HookActivityRegisterCallbacksV2(Subscriber subscriber, void* requested, void* completed) {
  BeforeCallOfSecondApi("cuptiActivityRegisterCallbacks_v2");
  return g_real.ActivityRegisterCallbacksV2(subscriber, requested, completed);
}

Result HookActivityEnableV2(Subscriber subscriber, uint32_t kind, void* configuration) {
  BeforeCallOfSecondApi("cuptiActivityEnable_v2");
  return g_real.ActivityEnableV2(subscriber, kind, configuration);
}

Result HookActivityEnableAndDumpV2(Subscriber subscriber, uint32_t kind, void* configuration) {
  BeforeCallOfSecondApi("cuptiActivityEnableAndDump_v2");
  return g_real.ActivityEnableAndDumpV2(subscriber, kind, configuration);
}

// Before any kind, or not at all, and it lasts.
Result HookActivityEnableHWTrace(uint8_t enable) {
  return WhileNoKindIsOn("cuptiActivityEnableHWTrace",
                         [enable] { return g_real.ActivityEnableHWTrace(enable); });
}

Result HookUnsubscribe(Subscriber subscriber) {
  if (HasItFromBroker(subscriber)) return broker::UnsubscribeClient();
  // Without callbacks we may be on beside it: with them, once it has gone.
  if (ClientHoldsSubscriptionAlone()) Quietly([] { BeforeSession("cuptiUnsubscribe"); });
  const Result result = g_real.Unsubscribe(subscriber);
  if (result == kSuccess) {
    const std::lock_guard lock(g_client->mutex);
    if (g_client->subscriptions > 0) --g_client->subscriptions;
  }
  Quietly(AfterRelease);
  return result;
}

Result HookEnableCallback(uint32_t enable, Subscriber subscriber, uint32_t domain, uint32_t cbid) {
  if (HasItFromBroker(subscriber)) {
    return broker::EnableCallbackForClient(enable, domain, cbid);
  }
  return g_real.EnableCallback(enable, subscriber, domain, cbid);
}

Result HookEnableDomain(uint32_t enable, Subscriber subscriber, uint32_t domain) {
  if (HasItFromBroker(subscriber)) {
    return broker::EnableDomainForClient(enable, domain);
  }
  return g_real.EnableDomain(enable, subscriber, domain);
}

Result HookEnableAllDomains(uint32_t enable, Subscriber subscriber) {
  if (HasItFromBroker(subscriber)) {
    return broker::EnableAllDomainsForClient(enable);
  }
  return g_real.EnableAllDomains(enable, subscriber);
}

Result HookGetCallbackState(uint32_t* enable, Subscriber subscriber, uint32_t domain,
                            uint32_t cbid) {
  if (HasItFromBroker(subscriber)) {
    return broker::GetCallbackStateForClient(enable, domain, cbid);
  }
  return g_real.GetCallbackState(enable, subscriber, domain, cbid);
}

// Outside a session only remembered: a program may register long before it enables anything, and
// until then nothing asks for its buffers.
Result HookActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
  if (requested == nullptr || completed == nullptr || second_api::IsOn()) {
    return g_real.ActivityRegisterCallbacks(requested, completed);
  }
  {
    const std::lock_guard lock(g_client->mutex);
    g_client->requested = requested;
    g_client->completed = completed;
    if (!g_client->active && !InForkChild()) return kSuccess;
    g_client->registered = true;
  }
  return RegisterClientsBuffers(requested);
}

Result HookActivityEnable(uint32_t kind) {
  Quietly([kind] { BeforeKind("cuptiActivityEnable", kind); });
  const Result result = g_real.ActivityEnable(kind);
  if (result == kSuccess) Note(kind, true);
  return result;
}

Result HookActivityEnableAndDump(uint32_t kind) {
  Quietly([kind] { BeforeKind("cuptiActivityEnableAndDump", kind); });
  const Result result = g_real.ActivityEnableAndDump(kind);
  if (result == kSuccess) Note(kind, true);
  return result;
}

Result HookActivityEnableContext(void* context, uint32_t kind) {
  Quietly([kind] { BeforeKind("cuptiActivityEnableContext", kind); });
  const Result result = g_real.ActivityEnableContext(context, kind);
  if (result == kSuccess) Note(kind, true);
  return result;
}

Result HookActivityDisable(uint32_t kind) {
  const Result result = g_real.ActivityDisable(kind);
  Note(kind, false);
  Quietly(AfterKindOff);
  return result;
}

Result HookActivityDisableContext(void* context, uint32_t kind) {
  const Result result = g_real.ActivityDisableContext(context, kind);
  Note(kind, false);
  Quietly(AfterKindOff);
  return result;
}

// The start of a session, though nothing is held by it: if no kind follows, we come back.
Result HookRegisterTimestampCallback(client_clock::Clock clock) {
  if (clock == nullptr || !InOwnProcess() || second_api::IsOn()) {
    return g_real.ActivityRegisterTimestampCallback(clock);
  }
  bool is_cuptis;
  {
    const std::lock_guard lock(g_client->mutex);
    const bool is_one_of_several = g_client->subscriptions > 0 && !g_client->first;
    is_cuptis = g_client->has_clock || is_one_of_several;
  }
  Quietly([] { BeforeSession("cuptiActivityRegisterTimestampCallback"); });
  const Result result = is_cuptis ? PassClockOn(clock) : kSuccess;
  if (!is_cuptis) client_clock::Set(clock);
  Quietly(AfterRelease);
  return result;
}

// As the times in its records.
Result HookGetTimestamp(uint64_t* timestamp) {
  const client_clock::Clock clock = client_clock::Get();
  if (clock == nullptr || timestamp == nullptr) return g_real.GetTimestamp(timestamp);
  *timestamp = clock();
  return kSuccess;
}

// Ours are on: forced, it would hand out kernels that are still running, without their ends. A
// buffer that the program is still to get comes by itself. A client of the second API forces one
// before it changes its records' shape, and must.
Result HookActivityFlushAll(uint32_t flag) {
  const bool may_be_forced = second_api::IsOn() || !OursAreOn();
  return g_real.ActivityFlushAll(may_be_forced ? flag : flag & ~kFlushForced);
}

// PyTorch's profiler sets one after its session, and we may be on again by then. In the middle of a
// session CUPTI's header calls that undefined: the client has it from its next session on.
Result HookActivitySetAttribute(int attribute, size_t* bytes, void* value) {
  const bool is_ours = attribute == kAttributeZeroedOutBuffer ||
                       attribute == kAttributePerThreadBuffer ||
                       attribute == kAttributeDeviceBufferPoolLimit;
  const bool is_whole = bytes != nullptr && *bytes >= AttributeBytes(attribute) && value != nullptr;
  if (!is_ours || !is_whole || second_api::IsOn() || !OursAreOn()) {
    return g_real.ActivitySetAttribute(attribute, bytes, value);
  }
  uint64_t kept = 0;
  std::memcpy(&kept, value, AttributeBytes(attribute));
  const std::lock_guard lock(g_client->mutex);
  g_client->attributes[static_cast<size_t>(attribute)] = kept;
  return kSuccess;
}

// Ends every session, ours included if we had one.
Result HookFinalize() {
  Quietly([] { BeforeSession("cuptiFinalize"); });
  const Result result = g_real.Finalize();
  {
    const std::lock_guard lock(g_client->mutex);
    g_client->subscriptions = 0;
    g_client->kinds.reset();
  }
  if (result == kSuccess) Quietly(broker::Forget);
  Quietly(AfterRelease);
  return result;
}

template <typename Type>
void* Address(Type* pointer) {
  return reinterpret_cast<void*>(pointer);
}

// And where the library's own function goes.
struct ClientHook {
  GotHook hook;
  void* real;
};

const std::array<ClientHook, 23>& AllHooks() {
  static const std::array<ClientHook, 23> hooks = {{
      {{"cuptiSubscribe", Address(&HookSubscribe)}, Address(&g_real.Subscribe)},
      {{"cuptiSubscribe_v2", Address(&HookSubscribeV2)}, Address(&g_real.SubscribeV2)},
      {{"cuptiUnsubscribe", Address(&HookUnsubscribe)}, Address(&g_real.Unsubscribe)},
      {{"cuptiEnableCallback", Address(&HookEnableCallback)}, Address(&g_real.EnableCallback)},
      {{"cuptiEnableDomain", Address(&HookEnableDomain)}, Address(&g_real.EnableDomain)},
      {{"cuptiEnableAllDomains", Address(&HookEnableAllDomains)},
       Address(&g_real.EnableAllDomains)},
      {{"cuptiGetCallbackState", Address(&HookGetCallbackState)},
       Address(&g_real.GetCallbackState)},
      {{"cuptiActivityRegisterCallbacks", Address(&HookActivityRegisterCallbacks)},
       Address(&g_real.ActivityRegisterCallbacks)},
      {{"cuptiActivityEnable", Address(&HookActivityEnable)}, Address(&g_real.ActivityEnable)},
      {{"cuptiActivityEnableAndDump", Address(&HookActivityEnableAndDump)},
       Address(&g_real.ActivityEnableAndDump)},
      {{"cuptiActivityEnableContext", Address(&HookActivityEnableContext)},
       Address(&g_real.ActivityEnableContext)},
      {{"cuptiActivityDisable", Address(&HookActivityDisable)}, Address(&g_real.ActivityDisable)},
      {{"cuptiActivityDisableContext", Address(&HookActivityDisableContext)},
       Address(&g_real.ActivityDisableContext)},
      {{"cuptiActivityFlushAll", Address(&HookActivityFlushAll)},
       Address(&g_real.ActivityFlushAll)},
      {{"cuptiActivitySetAttribute", Address(&HookActivitySetAttribute)},
       Address(&g_real.ActivitySetAttribute)},
      {{"cuptiActivitySetAttribute_v2", Address(&HookActivitySetAttributeV2)},
       Address(&g_real.ActivitySetAttributeV2)},
      {{"cuptiActivityRegisterCallbacks_v2", Address(&HookActivityRegisterCallbacksV2)},
       Address(&g_real.ActivityRegisterCallbacksV2)},
      {{"cuptiActivityEnable_v2", Address(&HookActivityEnableV2)},
       Address(&g_real.ActivityEnableV2)},
      {{"cuptiActivityEnableAndDump_v2", Address(&HookActivityEnableAndDumpV2)},
       Address(&g_real.ActivityEnableAndDumpV2)},
      {{"cuptiActivityEnableHWTrace", Address(&HookActivityEnableHWTrace)},
       Address(&g_real.ActivityEnableHWTrace)},
      {{"cuptiActivityRegisterTimestampCallback", Address(&HookRegisterTimestampCallback)},
       Address(&g_real.ActivityRegisterTimestampCallback)},
      {{"cuptiGetTimestamp", Address(&HookGetTimestamp)}, Address(&g_real.GetTimestamp)},
      {{"cuptiFinalize", Address(&HookFinalize)}, Address(&g_real.Finalize)},
  }};
  return hooks;
}

}  // namespace

void FindRealFunctions(void* library) {
  for (const ClientHook& hook : AllHooks()) {
    *static_cast<void**>(hook.real) = dlsym(library, std::string(hook.hook.symbol).c_str());
  }
}

std::span<const GotHook> ClientHooks() {
  static const auto hooks = [] {
    std::array<GotHook, 23> all;
    std::ranges::transform(AllHooks(), all.begin(), &ClientHook::hook);
    return all;
  }();
  return hooks;
}

}  // namespace ranktap::agent::cupti

// The program's sessions with CUPTI: when they begin, when they are over.
// Runs on: see cupti_client.h.  May not: be slow outside a session's start and end.
#include "agent/sources/cupti/cupti_client.h"

#include <dlfcn.h>

#include <chrono>
#include <mutex>
#include <utility>

#include "agent/core/agent_state.h"
#include "agent/sources/cupti/cupti_broker.h"
#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_client_clock.h"
#include "agent/sources/cupti/cupti_client_session.h"
#include "agent/sources/cupti/cupti_features.h"
#include "agent/sources/cupti/cupti_redirect.h"
#include "agent/sources/cupti/cupti_second_api.h"

namespace ranktap::agent::cupti {

constinit Client* g_client = nullptr;
constinit Real g_real{};

namespace {

// A buffer that the program has lent, full; or one of ours, which comes late.
void OnClientsBufferCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                              size_t valid_bytes) {
  if (g_callbacks.buffers->Owns(buffer)) {
    return OnBufferCompleted(context, stream, buffer, bytes, valid_bytes);
  }
  BufferCompleted completed;
  {
    const std::lock_guard lock(g_client->mutex);
    completed = g_client->completed;
  }
  if (completed == nullptr) return;
  Quietly(
      [=] { client_clock::Translate(*g_callbacks.api, g_client->version, buffer, valid_bytes); });
  completed(context, stream, buffer, bytes, valid_bytes);
}

// Another thread of the program's may be here already: CUPTI is free for neither before that one
// has waited.
bool IsFirstOfSession(Client& client) {
  constexpr std::chrono::seconds kPatience{6};
  std::unique_lock lock(client.mutex);
  if (client.active) {
    client.has_yielded.wait_for(lock, kPatience, [&client] { return !client.yielding; });
    return false;
  }
  client.active = client.yielding = true;
  return true;
}

// Attributes that the client set while we recorded, where CUPTI does not allow it.
void ApplyAttributes(Client& client) {
  decltype(client.attributes) kept;
  {
    const std::lock_guard lock(client.mutex);
    kept = std::exchange(client.attributes, {});
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    const int attribute = static_cast<int>(i);
    size_t bytes = AttributeBytes(attribute);
    if (kept[i]) (void)g_real.ActivitySetAttribute(attribute, &bytes, &*kept[i]);
  }
}

}  // namespace

Result RegisterClientsBuffers(BufferRequested requested) {
  return g_real.ActivityRegisterCallbacks(requested, &OnClientsBufferCompleted);
}

void BeforeSession(const char* call) {
  Client& client = *g_client;
  if (InForkChild() || !IsFirstOfSession(client)) return;
  client.duties.yield(call);
  ApplyAttributes(client);
  BufferRequested requested = nullptr;
  {
    const std::lock_guard lock(client.mutex);
    if (!client.registered) requested = client.requested;
    client.registered = client.registered || requested != nullptr;
  }
  if (requested != nullptr) (void)RegisterClientsBuffers(requested);
  {
    const std::lock_guard lock(client.mutex);
    client.yielding = false;
  }
  client.has_yielded.notify_all();
}

void AfterRelease() {
  Client& client = *g_client;
  {
    const std::lock_guard lock(client.mutex);
    const bool holds_subscription = client.subscriptions > 0 && !client.alone;
    if (!client.active || client.stays || holds_subscription || client.kinds.any()) return;
    client.active = client.registered = false;
    client.first = client.alone = client.alone && client.subscriptions > 0;
  }
  client.duties.resume(Config().return_ms);
}

void AfterKindOff() {
  {
    const std::lock_guard lock(g_client->mutex);
    g_client->alone = g_client->alone || (g_client->first && g_client->kinds.none());
  }
  AfterRelease();
}

Result PassClockOn(client_clock::Clock clock) {
  const Result result = g_real.ActivityRegisterTimestampCallback(clock);
  const std::lock_guard lock(g_client->mutex);
  g_client->has_clock = g_client->has_clock || result == kSuccess;
  return result;
}

void StopTranslating() {
  const client_clock::Clock clock = client_clock::Get();
  if (clock == nullptr) return;
  client_clock::Set(nullptr);
  (void)PassClockOn(clock);
}

void BeforeSecondApi(const char* call) {
  {
    const std::lock_guard lock(g_client->mutex);
    g_client->stays = true;
  }
  BeforeSession(call);
  StopTranslating();
}

void BeforeSharedApi(const char* call) {
  BeforeSession(call);
  StopTranslating();
}

void AfterSharedApi(bool has_begun) {
  if (has_begun) second_api::Begin();
  {
    const std::lock_guard lock(g_client->mutex);
    if (has_begun) g_client->stays = false;
    // Where it had a session of the first API besides, that one's end brings us back.
    if (!g_client->active || g_client->stays || (!has_begun && g_client->kinds.any())) return;
    g_client->active = g_client->registered = g_client->first = g_client->alone = false;
    if (has_begun) g_client->kinds.reset();
  }
  g_client->duties.resume(0);
}

void BeforeKind(const char* call, uint32_t kind) {
  if (second_api::IsOn()) return;  // refused, as without us
  BeforeSession(call);
  bool reach_us;
  {
    const std::lock_guard lock(g_client->mutex);
    reach_us = g_client->completed != nullptr;
  }
  if (!reach_us || !client_clock::KnowsTimesOf(kind)) StopTranslating();
}

void InstallClientHooks(LoadedApi& loaded, ClientDuties duties) {
  void* handle = dlopen(loaded.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return;
  FindRealFunctions(handle);
  broker::TakePlace(loaded.api, {.EnableDomain = g_real.EnableDomain,
                                 .EnableAllDomains = g_real.EnableAllDomains,
                                 .GetCallbackState = g_real.GetCallbackState});
  if (FeaturesOf(loaded.version).shares_second_api || Config().share_cupti) {
    second_api::TakePlace(loaded.api, handle);
  }
  auto* client = new Client;
  client->duties = std::move(duties);
  client->version = loaded.version;
  g_client = client;
  g_callbacks.strangers.store(&OnClientsBufferCompleted);
  RedirectCalls(handle, ClientHooks());
}

void RefreshClientHooks() {
  if (g_client != nullptr) RedirectNewModules();
}

void SetClientWasFirst(bool first) {
  if (g_client == nullptr) return;
  const std::lock_guard lock(g_client->mutex);
  if (g_client->first == first || (first && g_client->active)) return;
  g_client->first = g_client->active = g_client->registered = first;
  g_client->alone = false;
  g_client->subscriptions = first ? 1 : 0;
}

bool ClientIsActive() {
  if (g_client == nullptr) return false;
  const std::lock_guard lock(g_client->mutex);
  return g_client->active && (!g_client->first || g_client->alone);
}

std::string WhyClientStays() {
  if (g_client == nullptr) return {};
  const std::lock_guard lock(g_client->mutex);
  if (!g_client->stays) return {};
  return second_api::IsThere() ? ", and until it lets others subscribe to CUPTI's second API"
                               : ", and CUPTI has no way back from its second API";
}

bool ClientTookGraphsWhole() {
  if (g_client == nullptr) return false;
  const std::lock_guard lock(g_client->mutex);
  return g_client->took_graphs_whole;
}

bool ClientHoldsSubscriptionAlone() {
  if (g_client == nullptr) return false;
  const std::lock_guard lock(g_client->mutex);
  return g_client->alone && !g_client->active;
}

}  // namespace ranktap::agent::cupti

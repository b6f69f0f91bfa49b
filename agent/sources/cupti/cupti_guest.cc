// The program's sessions with CUPTI: when they begin, when they are over.
// Runs on: see cupti_guest.h.  May not: be slow outside a session's start and end.
#include "agent/sources/cupti/cupti_guest.h"

#include <dlfcn.h>

#include <chrono>
#include <mutex>

#include "agent/sources/cupti/cupti_broker.h"
#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_guest_clock.h"
#include "agent/sources/cupti/cupti_guest_session.h"
#include "agent/sources/cupti/cupti_redirect.h"

namespace ranktap::agent::cupti {

constinit Guest* g_guest = nullptr;
constinit Real g_real{};

namespace {

// A buffer that the program has lent, full.
void OnGuestsBufferCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                             size_t valid_bytes) {
  BufferCompleted completed;
  {
    const std::lock_guard lock(g_guest->mutex);
    completed = g_guest->completed;
  }
  if (completed == nullptr) return;
  Quietly([=] { guest_clock::Translate(*g_callbacks.api, g_guest->version, buffer, valid_bytes); });
  completed(context, stream, buffer, bytes, valid_bytes);
}

// Another thread of the program's may be here already: CUPTI is free for neither before that one
// has waited.
bool IsFirstOfSession(Guest& guest) {
  constexpr std::chrono::seconds kPatience{6};
  std::unique_lock lock(guest.mutex);
  if (guest.active) {
    guest.has_yielded.wait_for(lock, kPatience, [&guest] { return !guest.yielding; });
    return false;
  }
  guest.active = guest.yielding = true;
  return true;
}

}  // namespace

Result RegisterGuestsBuffers(BufferRequested requested) {
  return g_real.ActivityRegisterCallbacks(requested, &OnGuestsBufferCompleted);
}

void BeforeSession(const char* call) {
  Guest& guest = *g_guest;
  if (InForkChild() || !IsFirstOfSession(guest)) return;
  guest.duties.yield(call);
  BufferRequested requested = nullptr;
  {
    const std::lock_guard lock(guest.mutex);
    if (!guest.registered) requested = guest.requested;
    guest.registered = guest.registered || requested != nullptr;
  }
  if (requested != nullptr) (void)RegisterGuestsBuffers(requested);
  {
    const std::lock_guard lock(guest.mutex);
    guest.yielding = false;
  }
  guest.has_yielded.notify_all();
}

void AfterRelease() {
  Guest& guest = *g_guest;
  {
    const std::lock_guard lock(guest.mutex);
    const bool holds_subscription = guest.subscriptions > 0 && !guest.alone;
    if (!guest.active || holds_subscription || guest.kinds.any()) return;
    guest.active = guest.registered = false;
    guest.first = guest.alone = guest.alone && guest.subscriptions > 0;
  }
  guest.duties.resume();
}

void AfterKindOff() {
  {
    const std::lock_guard lock(g_guest->mutex);
    g_guest->alone = g_guest->alone || (g_guest->first && g_guest->kinds.none());
  }
  AfterRelease();
}

Result PassClockOn(guest_clock::Clock clock) {
  const Result result = g_real.ActivityRegisterTimestampCallback(clock);
  const std::lock_guard lock(g_guest->mutex);
  g_guest->has_clock = g_guest->has_clock || result == kSuccess;
  return result;
}

void StopTranslating() {
  const guest_clock::Clock clock = guest_clock::Get();
  if (clock == nullptr) return;
  guest_clock::Set(nullptr);
  (void)PassClockOn(clock);
}

void BeforeKind(const char* call, uint32_t kind) {
  BeforeSession(call);
  bool reach_us;
  {
    const std::lock_guard lock(g_guest->mutex);
    reach_us = g_guest->completed != nullptr;
  }
  if (!reach_us || !guest_clock::KnowsTimesOf(kind)) StopTranslating();
}

void InstallGuestHooks(LoadedApi& loaded, GuestDuties duties) {
  void* handle = dlopen(loaded.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return;
  FindRealFunctions(handle);
  broker::TakePlace(loaded.api, {.SubscribeV2 = g_real.SubscribeV2,
                                 .EnableDomain = g_real.EnableDomain,
                                 .EnableAllDomains = g_real.EnableAllDomains,
                                 .GetCallbackState = g_real.GetCallbackState});
  auto* guest = new Guest;
  guest->duties = std::move(duties);
  guest->version = loaded.version;
  g_guest = guest;
  g_callbacks.strangers.store(&OnGuestsBufferCompleted);
  RedirectCalls(handle, GuestHooks());
}

void RefreshGuestHooks() {
  if (g_guest != nullptr) RedirectNewModules();
}

void SetGuestWasFirst(bool first) {
  if (g_guest == nullptr) return;
  const std::lock_guard lock(g_guest->mutex);
  if (g_guest->first == first || (first && g_guest->active)) return;
  g_guest->first = g_guest->active = g_guest->registered = first;
  g_guest->alone = false;
  g_guest->subscriptions = first ? 1 : 0;
}

bool GuestIsActive() {
  if (g_guest == nullptr) return false;
  const std::lock_guard lock(g_guest->mutex);
  return g_guest->active && (!g_guest->first || g_guest->alone);
}

bool GuestHoldsSubscriptionAlone() {
  if (g_guest == nullptr) return false;
  const std::lock_guard lock(g_guest->mutex);
  return g_guest->alone && !g_guest->active;
}

}  // namespace ranktap::agent::cupti

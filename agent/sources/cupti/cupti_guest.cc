// Hooks on the program's CUPTI calls.
// Runs on: see cupti_guest.h.  May not: be slow outside a session's start and end.
#include "agent/sources/cupti/cupti_guest.h"

#include <dlfcn.h>

#include <array>
#include <bitset>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "agent/core/capture_state.h"
#include "agent/core/contain.h"
#include "agent/sources/cupti/cupti_broker.h"
#include "agent/sources/cupti/cupti_callbacks.h"
#include "agent/sources/cupti/cupti_redirect.h"

namespace ranktap::agent::cupti {
namespace {

constexpr size_t kKinds = 256;

// What the program holds of CUPTI, but for the subscription that it has from the broker: that one
// is in nobody's way. Guarded by its mutex, which is never held across a call into CUPTI.
struct Guest {
  std::mutex mutex;
  std::condition_variable has_yielded;
  GuestDuties duties;
  int subscriptions = 0;  // of CUPTI's own
  std::bitset<kKinds> kinds;
  BufferRequested requested = nullptr;
  BufferCompleted completed = nullptr;
  bool active = false;      // we have yielded, or are about to
  bool yielding = false;    // not yet
  bool first = false;       // active from before our hooks: what it holds is a guess
  bool registered = false;  // CUPTI has its callbacks, not ours
};
Guest* g_guest = nullptr;

// The library's own functions, found by name.
struct Real {
  Result (*Subscribe)(Subscriber*, CallbackFunction, void*);
  Result (*SubscribeV2)(Subscriber*, CallbackFunction, void*, void*);
  Result (*Unsubscribe)(Subscriber);
  Result (*EnableCallback)(uint32_t, Subscriber, uint32_t, uint32_t);
  Result (*EnableDomain)(uint32_t, Subscriber, uint32_t);
  Result (*EnableAllDomains)(uint32_t, Subscriber);
  Result (*GetCallbackState)(uint32_t*, Subscriber, uint32_t, uint32_t);
  Result (*ActivityRegisterCallbacks)(BufferRequested, BufferCompleted);
  Result (*ActivityEnable)(uint32_t);
  Result (*ActivityEnableAndDump)(uint32_t);
  Result (*ActivityEnableContext)(void*, uint32_t);
  Result (*ActivityDisable)(uint32_t);
  Result (*ActivityDisableContext)(void*, uint32_t);
  Result (*ActivityFlushAll)(uint32_t);
  Result (*Finalize)();
};
Real g_real;

bool InForkChild() { return !Capturing(kCaptureAlive); }

// A buffer that the program has lent, full.
void OnGuestsBufferCompleted(void* context, uint32_t stream, uint8_t* buffer, size_t bytes,
                             size_t valid_bytes) {
  BufferCompleted completed;
  {
    const std::lock_guard lock(g_guest->mutex);
    completed = g_guest->completed;
  }
  if (completed != nullptr) completed(context, stream, buffer, bytes, valid_bytes);
}

Result RegisterGuestsBuffers(BufferRequested requested) {
  return g_real.ActivityRegisterCallbacks(requested, &OnGuestsBufferCompleted);
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

// The program is about to start a session.
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

// The program has let go of something; when it holds nothing any more, we may come back.
void AfterRelease() {
  Guest& guest = *g_guest;
  {
    const std::lock_guard lock(guest.mutex);
    if (!guest.active || guest.subscriptions > 0 || guest.kinds.any()) return;
    guest.active = false;
    guest.first = false;
    guest.registered = false;
  }
  guest.duties.resume();
}

void Note(uint32_t kind, bool enabled) {
  if (kind >= kKinds) return;
  const std::lock_guard lock(g_guest->mutex);
  g_guest->kinds.set(kind, enabled);
}

template <typename Body>
void Quietly(Body&& body) {
  (void)Contain(false, [&body] {
    body();
    return true;
  });
}

Result HookSubscribe(Subscriber* subscriber, CallbackFunction callback, void* user) {
  if (InForkChild()) return g_real.Subscribe(subscriber, callback, user);
  return broker::SubscribeGuest(subscriber, callback, user, nullptr);
}

// From 13.5 on a client may ask to be one of several, and then uses calls that we know nothing of.
bool WantsToBeOneOfSeveral(const void* parameters) {
  struct Parameters {
    size_t bytes;
    const char* name;
    char* old_name;
    size_t old_bytes;
    uint8_t several;
  };
  const auto* given = static_cast<const Parameters*>(parameters);
  return given != nullptr && given->bytes > offsetof(Parameters, several) && given->several != 0;
}

Result HookSubscribeV2(Subscriber* subscriber, CallbackFunction callback, void* user,
                       void* parameters) {
  if (InForkChild()) return g_real.SubscribeV2(subscriber, callback, user, parameters);
  if (!WantsToBeOneOfSeveral(parameters)) {
    return broker::SubscribeGuest(subscriber, callback, user, parameters);
  }
  Quietly([] { BeforeSession("cuptiSubscribe_v2"); });
  const Result result = g_real.SubscribeV2(subscriber, callback, user, parameters);
  if (result == kSuccess) {
    const std::lock_guard lock(g_guest->mutex);
    ++g_guest->subscriptions;
  } else {
    Quietly(AfterRelease);
  }
  return result;
}

Result HookUnsubscribe(Subscriber subscriber) {
  if (broker::IsGuests(subscriber) && !InForkChild()) return broker::UnsubscribeGuest();
  const Result result = g_real.Unsubscribe(subscriber);
  if (result == kSuccess) {
    const std::lock_guard lock(g_guest->mutex);
    if (g_guest->subscriptions > 0) --g_guest->subscriptions;
  }
  Quietly(AfterRelease);
  return result;
}

Result HookEnableCallback(uint32_t enable, Subscriber subscriber, uint32_t domain, uint32_t cbid) {
  if (broker::IsGuests(subscriber) && !InForkChild()) {
    return broker::EnableCallbackForGuest(enable, domain, cbid);
  }
  return g_real.EnableCallback(enable, subscriber, domain, cbid);
}

Result HookEnableDomain(uint32_t enable, Subscriber subscriber, uint32_t domain) {
  if (broker::IsGuests(subscriber) && !InForkChild()) {
    return broker::EnableDomainForGuest(enable, domain);
  }
  return g_real.EnableDomain(enable, subscriber, domain);
}

Result HookEnableAllDomains(uint32_t enable, Subscriber subscriber) {
  if (broker::IsGuests(subscriber) && !InForkChild()) {
    return broker::EnableAllDomainsForGuest(enable);
  }
  return g_real.EnableAllDomains(enable, subscriber);
}

Result HookGetCallbackState(uint32_t* enable, Subscriber subscriber, uint32_t domain,
                            uint32_t cbid) {
  if (broker::IsGuests(subscriber) && !InForkChild()) {
    return broker::GetCallbackStateForGuest(enable, domain, cbid);
  }
  return g_real.GetCallbackState(enable, subscriber, domain, cbid);
}

// Outside a session only remembered: a program may register long before it enables anything, and
// until then nothing asks for its buffers.
Result HookActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
  if (requested == nullptr || completed == nullptr) {
    return g_real.ActivityRegisterCallbacks(requested, completed);
  }
  {
    const std::lock_guard lock(g_guest->mutex);
    g_guest->requested = requested;
    g_guest->completed = completed;
    if (!g_guest->active && !InForkChild()) return kSuccess;
    g_guest->registered = true;
  }
  return RegisterGuestsBuffers(requested);
}

Result HookActivityEnable(uint32_t kind) {
  Quietly([] { BeforeSession("cuptiActivityEnable"); });
  const Result result = g_real.ActivityEnable(kind);
  if (result == kSuccess) Note(kind, true);
  return result;
}

Result HookActivityEnableAndDump(uint32_t kind) {
  Quietly([] { BeforeSession("cuptiActivityEnableAndDump"); });
  const Result result = g_real.ActivityEnableAndDump(kind);
  if (result == kSuccess) Note(kind, true);
  return result;
}

Result HookActivityEnableContext(void* context, uint32_t kind) {
  Quietly([] { BeforeSession("cuptiActivityEnableContext"); });
  const Result result = g_real.ActivityEnableContext(context, kind);
  if (result == kSuccess) Note(kind, true);
  return result;
}

Result HookActivityDisable(uint32_t kind) {
  const Result result = g_real.ActivityDisable(kind);
  Note(kind, false);
  Quietly(AfterRelease);
  return result;
}

Result HookActivityDisableContext(void* context, uint32_t kind) {
  const Result result = g_real.ActivityDisableContext(context, kind);
  Note(kind, false);
  Quietly(AfterRelease);
  return result;
}

// Ours are on: forced, it would hand out kernels that are still running, without their ends. A
// buffer that the program is still to get comes by itself.
Result HookActivityFlushAll(uint32_t flag) {
  bool active;
  {
    const std::lock_guard lock(g_guest->mutex);
    active = g_guest->active;
  }
  const bool ours = !active && !InForkChild() && g_guest->duties.holds();
  return g_real.ActivityFlushAll(ours ? flag & ~kFlushForced : flag);
}

// Ends every session, ours included if we had one.
Result HookFinalize() {
  Quietly([] { BeforeSession("cuptiFinalize"); });
  const Result result = g_real.Finalize();
  {
    const std::lock_guard lock(g_guest->mutex);
    g_guest->subscriptions = 0;
    g_guest->kinds.reset();
  }
  if (result == kSuccess) Quietly(broker::Forget);
  Quietly(AfterRelease);
  return result;
}

template <typename Function>
void* Hook(Function* function) {
  return reinterpret_cast<void*>(function);
}

constexpr size_t kHooks = 15;
const std::array<GotHook, kHooks>& Hooks() {
  static const std::array<GotHook, kHooks> hooks = {{
      {"cuptiSubscribe", Hook(&HookSubscribe)},
      {"cuptiSubscribe_v2", Hook(&HookSubscribeV2)},
      {"cuptiUnsubscribe", Hook(&HookUnsubscribe)},
      {"cuptiEnableCallback", Hook(&HookEnableCallback)},
      {"cuptiEnableDomain", Hook(&HookEnableDomain)},
      {"cuptiEnableAllDomains", Hook(&HookEnableAllDomains)},
      {"cuptiGetCallbackState", Hook(&HookGetCallbackState)},
      {"cuptiActivityRegisterCallbacks", Hook(&HookActivityRegisterCallbacks)},
      {"cuptiActivityEnable", Hook(&HookActivityEnable)},
      {"cuptiActivityEnableAndDump", Hook(&HookActivityEnableAndDump)},
      {"cuptiActivityEnableContext", Hook(&HookActivityEnableContext)},
      {"cuptiActivityDisable", Hook(&HookActivityDisable)},
      {"cuptiActivityDisableContext", Hook(&HookActivityDisableContext)},
      {"cuptiActivityFlushAll", Hook(&HookActivityFlushAll)},
      {"cuptiFinalize", Hook(&HookFinalize)},
  }};
  return hooks;
}

template <typename Function>
void Find(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
}

void FindAll(void* handle) {
  Find(handle, "cuptiSubscribe", g_real.Subscribe);
  Find(handle, "cuptiSubscribe_v2", g_real.SubscribeV2);
  Find(handle, "cuptiUnsubscribe", g_real.Unsubscribe);
  Find(handle, "cuptiEnableCallback", g_real.EnableCallback);
  Find(handle, "cuptiEnableDomain", g_real.EnableDomain);
  Find(handle, "cuptiEnableAllDomains", g_real.EnableAllDomains);
  Find(handle, "cuptiGetCallbackState", g_real.GetCallbackState);
  Find(handle, "cuptiActivityRegisterCallbacks", g_real.ActivityRegisterCallbacks);
  Find(handle, "cuptiActivityEnable", g_real.ActivityEnable);
  Find(handle, "cuptiActivityEnableAndDump", g_real.ActivityEnableAndDump);
  Find(handle, "cuptiActivityEnableContext", g_real.ActivityEnableContext);
  Find(handle, "cuptiActivityDisable", g_real.ActivityDisable);
  Find(handle, "cuptiActivityDisableContext", g_real.ActivityDisableContext);
  Find(handle, "cuptiActivityFlushAll", g_real.ActivityFlushAll);
  Find(handle, "cuptiFinalize", g_real.Finalize);
}

}  // namespace

void InstallGuestHooks(LoadedApi& loaded, GuestDuties duties) {
  void* handle = dlopen(loaded.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return;
  FindAll(handle);
  broker::TakePlace(loaded.api, {.SubscribeV2 = g_real.SubscribeV2,
                                 .EnableDomain = g_real.EnableDomain,
                                 .EnableAllDomains = g_real.EnableAllDomains,
                                 .GetCallbackState = g_real.GetCallbackState});
  auto* guest = new Guest;
  guest->duties = std::move(duties);
  g_guest = guest;
  g_callbacks.strangers.store(&OnGuestsBufferCompleted);
  RedirectCalls(handle, Hooks());
}

void RefreshGuestHooks() {
  if (g_guest != nullptr) RedirectNewModules();
}

void SetGuestWasFirst(bool first) {
  if (g_guest == nullptr) return;
  const std::lock_guard lock(g_guest->mutex);
  if (g_guest->first == first || (first && g_guest->active)) return;
  g_guest->first = g_guest->active = g_guest->registered = first;
  g_guest->subscriptions = first ? 1 : 0;
}

bool GuestIsActive() {
  if (g_guest == nullptr) return false;
  const std::lock_guard lock(g_guest->mutex);
  return g_guest->active && !g_guest->first;
}

}  // namespace ranktap::agent::cupti

// Hooks on the program's CUPTI calls.
// Runs on: see cupti_guest.h.  May not: be slow outside a session's start and end.
#include "agent/sources/cupti/cupti_guest.h"

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <bitset>
#include <mutex>
#include <string>
#include <string_view>

#include "agent/core/capture_state.h"
#include "agent/core/contain.h"
#include "agent/core/log.h"
#include "agent/interpose/got_patcher.h"

namespace ranktap::agent::cupti {
namespace {

constexpr size_t kKinds = 256;

// What the program holds of CUPTI. Guarded by its mutex, which is never held across a call into
// CUPTI.
struct Guest {
  std::mutex mutex;
  GuestDuties duties;
  int subscriptions = 0;
  std::bitset<kKinds> kinds;
  BufferRequested requested = nullptr;
  BufferCompleted completed = nullptr;
  bool active = false;      // we have yielded
  bool first = false;       // active from before our hooks: what it holds is a guess
  bool registered = false;  // CUPTI has its callbacks, not ours
  uint64_t modules_seen = 0;
};
Guest* g_guest = nullptr;

// The library's own functions, found by name.
struct Real {
  Result (*Subscribe)(Subscriber*, CallbackFunction, void*);
  Result (*SubscribeV2)(Subscriber*, CallbackFunction, void*, void*);
  Result (*Unsubscribe)(Subscriber);
  Result (*ActivityRegisterCallbacks)(BufferRequested, BufferCompleted);
  Result (*ActivityEnable)(uint32_t);
  Result (*ActivityEnableAndDump)(uint32_t);
  Result (*ActivityEnableContext)(void*, uint32_t);
  Result (*ActivityDisable)(uint32_t);
  Result (*ActivityDisableContext)(void*, uint32_t);
  Result (*Finalize)();
};
Real g_real;

// The program is about to start a session.
void BeforeSession(const char* call) {
  if (!Capturing(kCaptureAlive)) return;  // a fork child
  Guest& guest = *g_guest;
  {
    const std::lock_guard lock(guest.mutex);
    if (guest.active) return;
    guest.active = true;
  }
  guest.duties.yield(call);
  BufferRequested requested = nullptr;
  BufferCompleted completed = nullptr;
  {
    const std::lock_guard lock(guest.mutex);
    if (guest.registered || guest.requested == nullptr) return;
    guest.registered = true;
    requested = guest.requested;
    completed = guest.completed;
  }
  (void)g_real.ActivityRegisterCallbacks(requested, completed);
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
  Quietly([] { BeforeSession("cuptiSubscribe"); });
  const Result result = g_real.Subscribe(subscriber, callback, user);
  if (result == kSuccess) {
    const std::lock_guard lock(g_guest->mutex);
    ++g_guest->subscriptions;
  } else {
    Quietly(AfterRelease);
  }
  return result;
}

Result HookSubscribeV2(Subscriber* subscriber, CallbackFunction callback, void* user,
                       void* parameters) {
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
  const Result result = g_real.Unsubscribe(subscriber);
  if (result == kSuccess) {
    const std::lock_guard lock(g_guest->mutex);
    if (g_guest->subscriptions > 0) --g_guest->subscriptions;
  }
  Quietly(AfterRelease);
  return result;
}

// Outside a session only remembered: a program may register long before it enables anything, and
// until then nothing asks for its buffers.
Result HookActivityRegisterCallbacks(BufferRequested requested, BufferCompleted completed) {
  {
    const std::lock_guard lock(g_guest->mutex);
    g_guest->requested = requested;
    g_guest->completed = completed;
    if (!g_guest->active && Capturing(kCaptureAlive)) return kSuccess;
    g_guest->registered = true;
  }
  return g_real.ActivityRegisterCallbacks(requested, completed);
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

// Ends every session, ours included if we had one.
Result HookFinalize() {
  Quietly([] { BeforeSession("cuptiFinalize"); });
  const Result result = g_real.Finalize();
  {
    const std::lock_guard lock(g_guest->mutex);
    g_guest->subscriptions = 0;
    g_guest->kinds.reset();
  }
  Quietly(AfterRelease);
  return result;
}

template <typename Function>
void* Hook(Function* function) {
  return reinterpret_cast<void*>(function);
}

const std::array<GotHook, 10>& Hooks() {
  static const std::array<GotHook, 10> hooks = {{
      {"cuptiSubscribe", Hook(&HookSubscribe)},
      {"cuptiSubscribe_v2", Hook(&HookSubscribeV2)},
      {"cuptiUnsubscribe", Hook(&HookUnsubscribe)},
      {"cuptiActivityRegisterCallbacks", Hook(&HookActivityRegisterCallbacks)},
      {"cuptiActivityEnable", Hook(&HookActivityEnable)},
      {"cuptiActivityEnableAndDump", Hook(&HookActivityEnableAndDump)},
      {"cuptiActivityEnableContext", Hook(&HookActivityEnableContext)},
      {"cuptiActivityDisable", Hook(&HookActivityDisable)},
      {"cuptiActivityDisableContext", Hook(&HookActivityDisableContext)},
      {"cuptiFinalize", Hook(&HookFinalize)},
  }};
  return hooks;
}

// By their places in Hooks(): the functions of the library that we use.
constinit std::array<void*, 10> g_hooked{};

}  // namespace

// Named in assembly.
extern "C" {
__attribute__((visibility("hidden"), used)) void* (*ranktap_dlsym)(void*, const char*) = &dlsym;

// What dlsym finds, but for the functions above. Another copy of CUPTI keeps its own.
__attribute__((visibility("hidden"), used)) void* RanktapFindCupti(void* handle, const char* name) {
  void* const found = ranktap_dlsym(handle, name);
  for (size_t i = 0; found != nullptr && i < g_hooked.size(); ++i) {
    if (g_hooked[i] == found) return Hooks()[i].replacement;
  }
  return found;
}
}

namespace {

// The program's calls of dlsym. All names that do not begin with "cupti" go on to it by a jump,
// with their return address: by that dlsym decides what RTLD_NEXT is.
__attribute__((naked)) void* HookDlsym(void*, const char*) {
  asm(R"(
      test %rsi, %rsi
      jz 1f
      cmpb $'c', (%rsi)
      jne 1f
      cmpb $'u', 1(%rsi)
      jne 1f
      cmpb $'p', 2(%rsi)
      jne 1f
      cmpb $'t', 3(%rsi)
      jne 1f
      cmpb $'i', 4(%rsi)
      je RanktapFindCupti
    1:
      jmp *ranktap_dlsym(%rip)
  )");
}

template <typename Function>
void Find(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
}

void Patch() {
  constexpr std::array<std::string_view, 1> kExcept = {"libcupti"};
  const std::array<GotHook, 1> lookups = {{{"dlsym", Hook(&HookDlsym)}}};
  const GotPatchResult result = PatchGlobalOffsetTables(Hooks(), kExcept);
  const GotPatchResult found = PatchGlobalOffsetTables(lookups, kExcept);
  if (result.failures + found.failures != 0) {
    Log("some modules' CUPTI calls could not be redirected");
  }
}

}  // namespace

void InstallGuestHooks(const LoadedApi& loaded, GuestDuties duties) {
  void* handle = dlopen(loaded.path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (handle == nullptr) return;
  Find(handle, "cuptiSubscribe", g_real.Subscribe);
  Find(handle, "cuptiSubscribe_v2", g_real.SubscribeV2);
  Find(handle, "cuptiUnsubscribe", g_real.Unsubscribe);
  Find(handle, "cuptiActivityRegisterCallbacks", g_real.ActivityRegisterCallbacks);
  Find(handle, "cuptiActivityEnable", g_real.ActivityEnable);
  Find(handle, "cuptiActivityEnableAndDump", g_real.ActivityEnableAndDump);
  Find(handle, "cuptiActivityEnableContext", g_real.ActivityEnableContext);
  Find(handle, "cuptiActivityDisable", g_real.ActivityDisable);
  Find(handle, "cuptiActivityDisableContext", g_real.ActivityDisableContext);
  Find(handle, "cuptiFinalize", g_real.Finalize);
  for (size_t i = 0; i < g_hooked.size(); ++i) {
    g_hooked[i] = dlsym(handle, std::string(Hooks()[i].symbol).c_str());
  }
  auto* guest = new Guest;
  guest->duties = std::move(duties);
  guest->modules_seen = ModuleLoadCount();
  g_guest = guest;
  Patch();
}

void RefreshGuestHooks() {
  if (g_guest == nullptr) return;
  const uint64_t modules = ModuleLoadCount();
  if (modules == g_guest->modules_seen) return;
  g_guest->modules_seen = modules;
  Patch();
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

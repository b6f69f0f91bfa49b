// The state that the hooks on the program's CUPTI calls share (cupti_client.cc,
// cupti_client_hooks.cc).
// Runs on: the program's threads.  May not: hold the lock across a call into CUPTI.
#pragma once

#include <array>
#include <bitset>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <utility>

#include "agent/core/capture_state.h"
#include "agent/core/contain.h"
#include "agent/interpose/got_patcher.h"
#include "agent/sources/cupti/cupti_api.h"
#include "agent/sources/cupti/cupti_client.h"
#include "agent/sources/cupti/cupti_client_clock.h"

namespace ranktap::agent::cupti {

inline constexpr size_t kKinds = 256;

// The program's holdings in CUPTI, but for the subscription that it has from the broker: that one
// is in nobody's way. Guarded by its mutex, which is never held across a call into CUPTI.
struct Client {
  std::mutex mutex;
  std::condition_variable has_yielded;
  ClientDuties duties;
  uint32_t version = 0;
  int subscriptions = 0;  // of CUPTI's own
  std::bitset<kKinds> kinds;
  std::array<std::optional<uint64_t>, 16> attributes;  // what it has set while we recorded
  BufferRequested requested = nullptr;
  BufferCompleted completed = nullptr;
  bool active = false;             // we have yielded, or are about to
  bool stays = false;              // it uses the second API, from which CUPTI has no way back
  bool has_clock = false;          // CUPTI itself has a clock of the program's, for good
  bool yielding = false;           // not yet
  bool first = false;              // active from before our hooks: what it holds is a guess
  bool alone = false;              // the subscription from before our hooks is all that it holds
  bool took_graphs_whole = false;  // at some time
  bool registered = false;         // CUPTI has its callbacks, not ours
};
extern Client* g_client;

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
  Result (*ActivitySetAttribute)(int, size_t*, void*);
  Result (*ActivitySetAttributeV2)(Subscriber, int, size_t*, void*);
  Result (*ActivityRegisterCallbacksV2)(Subscriber, void* requested, void* completed);
  Result (*ActivityEnableV2)(Subscriber, uint32_t, void* configuration);
  Result (*ActivityEnableAndDumpV2)(Subscriber, uint32_t, void* configuration);
  Result (*ActivityEnableHWTrace)(uint8_t);
  Result (*ActivityRegisterTimestampCallback)(client_clock::Clock);
  Result (*GetTimestamp)(uint64_t*);
  Result (*Finalize)();
};
extern Real g_real;

// Or the agent has gone quiet: nobody there would yield.
inline bool InForkChild() { return !Capturing(kCaptureAlive); }

template <typename Body>
void Quietly(Body&& body) {
  (void)Contain(false, [&body] {
    body();
    return true;
  });
}

// The program is about to start a session with this call, by enabling a kind or otherwise.
void BeforeSession(const char* call);
// The same, and it stays: CUPTI's second API.
void BeforeSecondApi(const char* call);
// The same, until AfterSharedApi: from then on we record beside it, by that API if it has begun.
void BeforeSharedApi(const char* call);
void AfterSharedApi(bool has_begun);
void BeforeKind(const char* call, uint32_t kind);
// The program has let go of something; when it holds nothing any more, we may come back.
void AfterRelease();
// The same, of a kind: there we have seen what the program does with records.
void AfterKindOff();
// Gives CUPTI itself a clock of the program's. Later ones go there too.
Result PassClockOn(client_clock::Clock clock);
// CUPTI translates the program's records where we may not. Our times are other ones from then on,
// and count as untimed (Doubts::PossibleTimes).
void StopTranslating();
// Gives CUPTI the program's buffers.
Result RegisterClientsBuffers(BufferRequested requested);

// Fills g_real from the library.
void FindRealFunctions(void* library);
std::span<const GotHook> ClientHooks();

}  // namespace ranktap::agent::cupti

// One subscription for two.
// Runs on: see cupti_broker.h.  May not: allocate or lock in TellClient.
#include "agent/sources/cupti/cupti_broker.h"

#include <time.h>

#include <array>
#include <mutex>

#include "agent/core/host_clock.h"
#include "agent/sources/cupti/cupti_callbacks.h"

namespace ranktap::agent::cupti::broker {

constinit std::atomic<uint32_t> g_client_domains{0};

namespace {

// CUPTI 13.5 has 7 domains and 0x400 ids in the largest.
constexpr uint32_t kDomains = 8, kIds = 2048;
enum Owner : uint8_t { kOurs = 1, kClients = 2 };

struct Share {
  std::mutex mutex;  // of the next three
  // Across CUPTI's calls that are undefined beside each other (header): EnableCallback,
  // EnableDomain, GetCallbackState. None of them waits for a callback.
  std::mutex calls;
  Subscriber subscriber = nullptr;
  bool held_by_us = false;
  std::atomic<bool> held_by_client{false};
  // The owners that enabled each callback.
  std::array<std::array<std::atomic<uint8_t>, kIds>, kDomains> owners{};
  std::array<std::atomic<int>, kDomains> clients_in_domain{};
  std::atomic<CallbackFunction> callback{nullptr};
  std::atomic<void*> user{nullptr};
  std::atomic<int> callbacks_running{0};
};
constinit Share g_share;
constinit thread_local int g_callbacks_on_this_thread = 0;

struct Real : ClientSubscription {
  Result (*Subscribe)(Subscriber*, CallbackFunction, void*);
  Result (*Unsubscribe)(Subscriber);
  Result (*EnableCallback)(uint32_t, Subscriber, uint32_t, uint32_t);
};
constinit Real g_real{};

bool IsKnown(uint32_t domain, uint32_t cbid) { return domain < kDomains && cbid < kIds; }

// Makes CUPTI's state that of `owners`, as the last thread that changed them left it.
Result Apply(uint32_t domain, uint32_t cbid) {
  const std::lock_guard lock(g_share.calls);
  const bool wanted = g_share.owners[domain][cbid].load() != 0;
  return g_real.EnableCallback(wanted ? 1 : 0, g_share.subscriber, domain, cbid);
}

Result EnableWholeDomain(uint32_t domain) {
  const std::lock_guard lock(g_share.calls);
  return g_real.EnableDomain(1, g_share.subscriber, domain);
}

// False: it was so already.
bool SetOwner(uint32_t domain, uint32_t cbid, Owner owner, bool enable) {
  auto& owners = g_share.owners[domain][cbid];
  const uint8_t before =
      enable ? owners.fetch_or(owner) : owners.fetch_and(static_cast<uint8_t>(~owner));
  const bool changed = ((before & owner) != 0) != enable;
  if (!changed || owner != kClients) return changed;
  if (enable) {
    g_share.clients_in_domain[domain].fetch_add(1);
    g_client_domains.fetch_or(1u << domain);
  } else if (g_share.clients_in_domain[domain].fetch_sub(1) == 1) {
    g_client_domains.fetch_and(~(1u << domain));
  }
  return true;
}

Result Enable(Owner owner, uint32_t enable, uint32_t domain, uint32_t cbid) {
  if (!IsKnown(domain, cbid)) return kErrorInvalidParameter;
  const bool changed = SetOwner(domain, cbid, owner, enable != 0);
  const Result result = Apply(domain, cbid);
  if (result != kSuccess && changed && enable != 0) SetOwner(domain, cbid, owner, false);
  return result;
}

void DropAll(Owner owner) {
  for (uint32_t domain = 0; domain < kDomains; ++domain) {
    for (uint32_t cbid = 0; cbid < kIds; ++cbid) {
      if (SetOwner(domain, cbid, owner, false)) (void)Apply(domain, cbid);
    }
  }
}

void ForgetOwners() {
  for (uint32_t domain = 0; domain < kDomains; ++domain) {
    for (auto& owners : g_share.owners[domain]) owners.store(0);
    g_share.clients_in_domain[domain].store(0);
  }
  g_client_domains.store(0);
}

Result SubscribeUs(Subscriber* subscriber, CallbackFunction callback, void* user) {
  const std::lock_guard lock(g_share.mutex);
  if (g_share.subscriber == nullptr) {
    const Result result = g_real.Subscribe(&g_share.subscriber, callback, user);
    if (result != kSuccess) {
      g_share.subscriber = nullptr;
      return result;
    }
  }
  g_share.held_by_us = true;
  *subscriber = g_share.subscriber;
  return kSuccess;
}

// Under the lock, when the last of the two has gone.
Result LetGo() {
  const Result result = g_real.Unsubscribe(g_share.subscriber);
  g_share.subscriber = nullptr;
  ForgetOwners();
  return result;
}

Result UnsubscribeUs(Subscriber) {
  const std::lock_guard lock(g_share.mutex);
  g_share.held_by_us = false;
  if (!g_share.held_by_client) return LetGo();
  DropAll(kOurs);
  return kSuccess;
}

Result EnableForUs(uint32_t enable, Subscriber, uint32_t domain, uint32_t cbid) {
  return Enable(kOurs, enable, domain, cbid);
}

// A client that left its callback by longjmp is not waited for.
void WaitForCallbacks() {
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 20'000};
  const uint64_t deadline = ClockNs(CLOCK_MONOTONIC) + kPatienceNs;
  while (g_share.callbacks_running.load() > g_callbacks_on_this_thread &&
         ClockNs(CLOCK_MONOTONIC) < deadline) {
    nanosleep(&kNap, nullptr);
  }
}

void Forward(uint32_t domain, uint32_t cbid, const void* data) {
  // Counted before the callback is read: UnsubscribeClient sees one or the other.
  struct Running {
    Running() {
      g_share.callbacks_running.fetch_add(1);
      ++g_callbacks_on_this_thread;
    }
    ~Running() {
      --g_callbacks_on_this_thread;
      g_share.callbacks_running.fetch_sub(1);
    }
  } const running;
  if (const CallbackFunction callback = g_share.callback.load()) {
    callback(g_share.user.load(), domain, cbid, data);
  }
}

bool ClientWants(uint32_t domain, uint32_t cbid) {
  return IsKnown(domain, cbid) && (g_share.owners[domain][cbid].load() & kClients) != 0;
}

}  // namespace

void TakePlace(Api& api, const ClientSubscription& rest) {
  static_cast<ClientSubscription&>(g_real) = rest;
  g_real.Subscribe = api.Subscribe;
  g_real.Unsubscribe = api.Unsubscribe;
  g_real.EnableCallback = api.EnableCallback;
  api.Subscribe = &SubscribeUs;
  api.Unsubscribe = &UnsubscribeUs;
  api.EnableCallback = &EnableForUs;
}

Result SubscribeClient(Subscriber* subscriber, CallbackFunction callback, void* user) {
  if (subscriber == nullptr || callback == nullptr) return kErrorInvalidParameter;
  const std::lock_guard lock(g_share.mutex);
  // A second client: CUPTI itself says no, as it does in this version.
  Subscriber refused = nullptr;
  Subscriber* const wanted = g_share.held_by_client ? &refused : &g_share.subscriber;
  if (g_share.held_by_client || g_share.subscriber == nullptr) {
    const Result result = g_real.Subscribe(wanted, &OnCallback, nullptr);
    if (result != kSuccess) return result;
  }
  g_share.user.store(user);
  g_share.callback.store(callback);
  g_share.held_by_client = true;
  *subscriber = g_share.subscriber;
  return kSuccess;
}

bool IsClients(Subscriber subscriber) {
  return g_share.held_by_client && subscriber == g_share.subscriber;
}

Result UnsubscribeClient() {
  g_share.callback.store(nullptr);
  DropAll(kClients);
  WaitForCallbacks();
  const std::lock_guard lock(g_share.mutex);
  g_share.held_by_client = false;
  return g_share.held_by_us ? kSuccess : LetGo();
}

Result EnableCallbackForClient(uint32_t enable, uint32_t domain, uint32_t cbid) {
  return Enable(kClients, enable, domain, cbid);
}

// Only the client hears of callbacks that CUPTI itself switches on beyond ours.
Result EnableDomainForClient(uint32_t enable, uint32_t domain) {
  if (domain >= kDomains) return kErrorInvalidParameter;
  if (enable != 0) {
    for (uint32_t cbid = 1; cbid < kIds; ++cbid) SetOwner(domain, cbid, kClients, true);
    const Result result = EnableWholeDomain(domain);
    if (result == kSuccess) return result;
    for (uint32_t cbid = 1; cbid < kIds; ++cbid) SetOwner(domain, cbid, kClients, false);
    return result;
  }
  for (uint32_t cbid = 1; cbid < kIds; ++cbid) {
    if (SetOwner(domain, cbid, kClients, false)) (void)Apply(domain, cbid);
  }
  return kSuccess;
}

Result EnableAllDomainsForClient(uint32_t enable) {
  bool any = false;
  for (uint32_t domain = 1; domain < kDomains; ++domain) {
    any |= EnableDomainForClient(enable, domain) == kSuccess;
  }
  return any ? kSuccess : kErrorInvalidParameter;
}

Result GetCallbackStateForClient(uint32_t* enable, uint32_t domain, uint32_t cbid) {
  const std::lock_guard lock(g_share.calls);
  const Result result = g_real.GetCallbackState(enable, g_share.subscriber, domain, cbid);
  if (result == kSuccess) *enable = ClientWants(domain, cbid) ? 1 : 0;
  return result;
}

void Forget() {
  const std::lock_guard lock(g_share.mutex);
  g_share.callback.store(nullptr);
  g_share.subscriber = nullptr;
  g_share.held_by_us = g_share.held_by_client = false;
  ForgetOwners();
}

bool IsOurs(uint32_t domain, uint32_t cbid) {
  return IsKnown(domain, cbid) && (g_share.owners[domain][cbid].load() & kOurs) != 0;
}

void TellClient(uint32_t domain, uint32_t cbid, const void* data) {
  if (ClientWants(domain, cbid)) Forward(domain, cbid, data);
}

}  // namespace ranktap::agent::cupti::broker

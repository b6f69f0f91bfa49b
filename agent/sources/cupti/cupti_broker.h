// CUPTI's one subscription, held for two: for us, and for a client of the program's own. PyTorch's
// profiler subscribes at its first session and never lets go; we would be shut out from then on. So
// whoever subscribes first, our callback is the one that CUPTI knows, and the program's client gets
// the same handle and from us the callbacks that it has enabled.
//
//   who calls what                   CUPTI has enabled   we hear   the client hears
//   we subscribe, enable launches    launches            launches  -
//   PyTorch subscribes               launches            launches  -            it gets our handle
//   PyTorch enables launches, copies launches, copies    launches  launches, copies
//   we unsubscribe                   launches, copies    -         launches, copies
//   PyTorch unsubscribes             nothing: the last of the two gives the subscription back
//
// Runs on: the arming and drain threads (what TakePlace puts into the table), the program's threads
// (the rest).  May not: hold its lock while it waits for a callback to end. It is held across
// CUPTI's own Subscribe and Unsubscribe, where nobody can wait for it in a callback of ours.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/sources/cupti/cupti_api.h"

namespace ranktap::agent::cupti {

// The functions that the broker needs of CUPTI beside Api.
struct ClientSubscription {
  Result (*EnableDomain)(uint32_t enable, Subscriber, uint32_t domain);
  Result (*EnableAllDomains)(uint32_t enable, Subscriber);
  Result (*GetCallbackState)(uint32_t* enable, Subscriber, uint32_t domain, uint32_t cbid);
};

namespace broker {

// Puts functions of the broker's into `api` for Subscribe, Unsubscribe and EnableCallback: what we
// call. Once, before the first of these calls.
void TakePlace(Api& api, const ClientSubscription& rest);

// For the program's client. An error is CUPTI's own.
Result SubscribeClient(Subscriber* subscriber, CallbackFunction callback, void* user);
// Whether the handle is the one that SubscribeClient gave, and is still good; else a call with it
// is CUPTI's business.
bool IsClients(Subscriber subscriber);
// No callback of the client's runs any more when this returns, but for the one it is called from.
Result UnsubscribeClient();
Result EnableCallbackForClient(uint32_t enable, uint32_t domain, uint32_t cbid);
Result EnableDomainForClient(uint32_t enable, uint32_t domain);
Result EnableAllDomainsForClient(uint32_t enable);
Result GetCallbackStateForClient(uint32_t* enable, uint32_t domain, uint32_t cbid);

// CUPTI has ended: nobody holds anything.
void Forget();

// One bit for each domain that the client has enabled callbacks in.
extern std::atomic<uint32_t> g_client_domains;
inline bool ClientListens(uint32_t domain) {
  return (g_client_domains.load(std::memory_order_relaxed) >> (domain & 31) & 1) != 0;
}

// Whether we have enabled a callback, beside the client or not.
bool IsOurs(uint32_t domain, uint32_t cbid);

// Gives a callback to the client, if it wants that one: before ours at a call's begin, after ours
// at its end.
void TellClient(uint32_t domain, uint32_t cbid, const void* data);

}  // namespace broker
}  // namespace ranktap::agent::cupti

// The program's own CUPTI client (torch.profiler, Proton, a tool it brings): CUPTI records activity
// for one at a time, and the program's comes first. Its CUPTI calls pass through here; at the first
// that starts a session we get out of the way, and when its session is over we come back. Its
// subscription is not a session: the broker shares it (cupti_broker.h).
// Runs on: the program's threads, in calls it makes to CUPTI (not hot); Install and Refresh on the
// arming and drain threads.  May not: hold a lock across a call into CUPTI.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "agent/sources/cupti/cupti_api.h"

namespace ranktap::agent::cupti {

// The work that the hooks want of the drain thread.
struct ClientDuties {
  // Gives CUPTI up: returns when we hold nothing of it any more, or after a bounded wait. `why` is
  // the call that asked.
  std::function<void(const char* why)> yield;
  // The program's session is over: we may come back after so long.
  std::function<void(uint64_t grace_ms)> resume;
  // Whether our session is on.
  std::function<bool()> holds;
};

// Redirects the program's calls, and puts the broker into `loaded`, which must live on. Once; later
// modules by RefreshClientHooks.
void InstallClientHooks(LoadedApi& loaded, ClientDuties duties);

// Patches modules loaded since; cheap when there are none.
void RefreshClientHooks();

// true: CUPTI refused our subscription, since a client had one before our hooks were there. If it
// is the program's, its end will be seen like that of any other; it may also be one that we never
// see, so we try again all the same. false: our subscription was taken.
void SetClientWasFirst(bool first);

// The client of SetClientWasFirst has ended a session under our eyes: of CUPTI it has the
// subscription left, which we cannot share, and no activity.
bool ClientHoldsSubscriptionAlone();

// The program's client has enabled GRAPH_TRACE, at some time.
bool ClientTookGraphsWhole();

// The program's client uses CUPTI's second API, and we may not come back: for the gap. Else empty.
std::string WhyClientStays();

// The program has a session that began under our eyes, or is about to.
bool ClientIsActive();

}  // namespace ranktap::agent::cupti

// CUPTI's second API, in which each of several subscribers has kinds, buffers and records of its
// own. We use it once a client of the program's does, and never first: a process that has used it
// takes no call of the first API any more, and the first subscriber chooses for all whether others
// may come, whether graphs are recorded whole, and whether hardware events time them.
// Runs on: TakePlace on the arming thread, Begin on the program's, the rest as Api's functions.
// May not: set what holds for all subscribers; force a flush, which ends the records of all.
#pragma once

#include "agent/sources/cupti/cupti_api.h"

namespace ranktap::agent::cupti::second_api {

// Puts functions into `api` that go to the second API from Begin on, where `library` has all of it
// (from 13.3 on). Once, after the broker.
void TakePlace(Api& api, void* library);

// Whether Begin may be called.
bool IsThere();
// The program's client has subscribed, and lets others do so.
void Begin();
bool IsOn();

// cuptiSubscribe_v2's parameters as the program gave them: whether it lets others subscribe.
bool AllowsOthers(const void* parameters);

// Attributes that hold for all subscribers, and may only change while no kind is on.
bool IsOfAll(int attribute);

// The first subscriber has chosen whole graphs.
bool GraphsAreWhole();

}  // namespace ranktap::agent::cupti::second_api

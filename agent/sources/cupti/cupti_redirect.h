// The program's calls of some of CUPTI's functions, led to functions of ours: those that modules
// make through their global offset tables, and those by addresses that the program gets from dlsym.
// Runs on: the arming and drain threads.  May not: run in a hook.
#pragma once

#include <span>

#include "agent/interpose/got_patcher.h"

namespace ranktap::agent::cupti {

// `library`: the CUPTI that we use. `hooks` must live on. Once; later modules by
// RedirectNewModules.
void RedirectCalls(void* library, std::span<const GotHook> hooks);

// Modules loaded since; cheap when there are none.
void RedirectNewModules();

}  // namespace ranktap::agent::cupti

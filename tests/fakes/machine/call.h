// The calls of the program: who is calling, under which correlation id, and the tool's callbacks at
// entry and exit. One ThreadState per thread; the rest is safe from every thread.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

struct Context;

struct ThreadState {
  Context* contexts[16] = {};  // the stack of current contexts, top last
  int context_count = 0;
  int call_depth = 0;
  int tool_callback_depth = 0;
  uint32_t correlation = 0;  // of the outermost call
  ApiDomain outer_domain = ApiDomain::kDriver;
  uint32_t outer_cbid = 0;
  bool per_thread_default = false;  // the call is a _ptsz/_ptds entry
  int32_t thread_id = 0;

  Context* current() const { return context_count == 0 ? nullptr : contexts[context_count - 1]; }
};

ThreadState& CurrentThread();
int32_t ThreadId();

// The machine was initialised in a process that has forked since, and this is the child.
bool InForkedChild();
// Called once, by cuInit, in the process that may use the machine from now on.
void ClaimProcess();

bool BeginCall(ApiCall& call);
void EndCall(ApiCall& call);
void AbandonCall(ApiCall& call);

void SetHooks(const ToolHooks* hooks);
// Null while no tool listens, and within a tool's own callback.
const ToolHooks* Hooks();

}  // namespace ranktap::standin

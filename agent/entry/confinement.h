// Calls by which a program restricts itself in ways that would end our threads, or one of our
// calls, or that these would spoil:
//   seccomp, a time stamp counter that faults        ours end for good
//   rights of one thread (capabilities, securebits, no_new_privs, landlock, ids by a raw call)
//                                                    ours end, and come back with the new rights:
//                                                    else root's stay in the process
//   ids by libc                                      the same: glibc aborts where a thread of the
//                                                    process may not do what another may
//   namespaces that the kernel gives to programs of one thread     the same
// Its calls of libc go through us, those of modules that come later too while the program has one
// thread, and what it gets by dlsym. A raw instruction is not seen, nor an address from before our
// start.
// Runs on: InstallConfinementHooks on the starting thread and at each later entry; the
// hooks on the program's.  May not: change what the calls do or return.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranktap::agent {

// In a program that has threads of its own, or only where ours are the only others.
enum class Pauses { kAlways, kIfAlone };

struct ConfinementDuties {
  // Nothing of ours may make a system call any more, or read the TSC: called before the program's
  // own call.
  void (*stop_for_good)(std::string_view why);
  // Our threads are to be gone until resume, which follows where this is true. False: they stay.
  bool (*pause)(Pauses pauses);
  void (*resume)();
  // Whether the program has but one thread.
  bool (*is_alone)();
  // This is a child that no atfork handler saw; null where a page tells (capture_state.h).
  void (*in_fork_child)();
};

// Again: only what was loaded since then.
void InstallConfinementHooks(const ConfinementDuties& duties);

}  // namespace ranktap::agent

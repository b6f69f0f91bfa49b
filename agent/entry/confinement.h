// What a program does to itself that our threads, or one of our calls, would not live through:
// seccomp, a time stamp counter that faults, a user namespace (which the kernel gives to programs
// of one thread). Its calls of libc's prctl, syscall and unshare go through us.
// A raw instruction, an address from dlsym, and a module that came after the last installation are
// not seen. Runs on: InstallConfinementHooks on the starting thread and at each later entry; the
// hooks on the program's.  May not: change what the calls do or return.
#pragma once

#include <cstdint>
#include <string_view>

namespace ranktap::agent {

struct ConfinementDuties {
  // Nothing of ours may make a system call any more, or read the TSC: called before the program's
  // own call.
  void (*stop_for_good)(std::string_view why);
  // Our threads are to be gone (true), and may come back (false). False: they stay.
  bool (*send_away)(bool away);
  // This is a child that no atfork handler saw; null where a page tells (capture_state.h).
  void (*in_fork_child)();
};

// Again: only what was loaded since then.
void InstallConfinementHooks(const ConfinementDuties& duties);

}  // namespace ranktap::agent

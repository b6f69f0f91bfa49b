// The function that stands in the program's tables for `syscall`: a few compares, then a jump to
// libc's with the caller's registers and stack, since children that share memory return through it
// twice.
// Runs on: the program's threads.  May not: leave a register or the stack changed where it jumps
// on.
#pragma once

namespace ranktap::agent {

void* SyscallHook();

}  // namespace ranktap::agent

// Named in assembly.
extern "C" {
// libc's.
extern long (*ranktap_syscall)(long, ...) __attribute__((visibility("hidden")));
// Whether forks by `syscall` are wanted too.
extern bool ranktap_sees_forks __attribute__((visibility("hidden")));
// Makes the call. Defined by whoever wants it (confinement.cc).
__attribute__((visibility("hidden"))) long RanktapOnSyscall(long number, long a, long b, long c,
                                                            long d, long e, long f);
}

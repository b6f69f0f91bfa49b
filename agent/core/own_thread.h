// A thread of ours in somebody else's process. There are four at most: the sender, the drain, the
// sampler and the one that asks the Flight Recorder. All signals are blocked before one exists, so
// that it never takes a signal meant for the program. It is detached: at exit it is left where it
// stands, and a body that returns ends the thread. A fork child has none of ours and must not start
// one. Runs on: Start on the starting thread, the sender, or the thread inside cuInit.  May not: be
// destroyed while its thread runs.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ranktap::agent {

class OwnThread {
 public:
  struct Setup {
    const char* name;  // at most 15 characters, of static storage: what top and gdb show
    int nice;          // of this thread only
    size_t stack_bytes;
    void (*body)(void* owner);
    void* owner;
    // Its body calls the program's libraries, which may keep it for good.
    bool may_be_lost = false;
  };

  OwnThread() = default;
  OwnThread(const OwnThread&) = delete;
  OwnThread& operator=(const OwnThread&) = delete;

  // Runs setup.body(setup.owner) on a new thread; again only after that one's end. False: the
  // system gives none.
  [[nodiscard]] bool Start(const Setup& setup);

 private:
  static void* Enter(void* own_thread);

  Setup setup_{};
  size_t place_ = 0;
};

// How many threads of ours have not returned from their bodies.
uint32_t OwnThreadsRunning();

// Returns when the kernel has none of those left whose bodies have returned or will, but for the
// calling one. False: `deadline_ns` (CLOCK_MONOTONIC) came first. Makes system calls all the while.
// One that may be lost, and has not ended by then, is: nobody waits for it again.
bool WaitForOwnThreadsEnd(uint64_t deadline_ns);

// From now on a thread of ours whose body returns stays where it is: at exit, the end of a thread
// would run destructors of libraries that have been torn down.
void KeepOwnThreads();

// The signal mask of the thread that started the first of ours: the program's.
const sigset_t& ProgramSignalMask();

}  // namespace ranktap::agent

// What every thread of ours has in common.
// Runs on: see own_thread.h.  May not: leave the starting thread's signal mask changed.
#include "agent/core/own_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/core/sanitizers.h"

namespace ranktap::agent {
namespace {

bool StartDetached(size_t stack_bytes, void* (*entry)(void*), void* argument) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  const bool started = pthread_create(&thread, &attributes, entry, argument) == 0;
  pthread_attr_destroy(&attributes);
  return started;
}

}  // namespace

bool OwnThread::Start(const Setup& setup) {
  setup_ = setup;
  // A new thread inherits the mask: blocked by itself, it could take a signal before that.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = StartDetached(setup.stack_bytes, &Enter, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

void* OwnThread::Enter(void* own_thread) {
  const Setup& setup = static_cast<OwnThread*>(own_thread)->setup_;
  pthread_setname_np(pthread_self(), setup.name);
  const HiddenFromTsan hidden;
  // POSIX means the process; Linux gives each thread its own nice value.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), setup.nice);
  setup.body(setup.owner);
  return nullptr;
}

}  // namespace ranktap::agent

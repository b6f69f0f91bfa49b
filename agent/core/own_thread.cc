// The frame that all our threads have in common.
// Runs on: see own_thread.h.  May not: leave the starting thread's signal mask changed.
#include "agent/core/own_thread.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "agent/core/contain.h"
#include "agent/core/default_floats.h"
#include "agent/core/host_clock.h"
#include "agent/core/sanitizers.h"

namespace ranktap::agent {
namespace {

// More than there ever are in a program; what has none is not counted.
constexpr size_t kPlaces = 6;
constexpr size_t kNoPlace = kPlaces;
constexpr pid_t kComing = -1;  // the thread has not told its number yet

struct Place {
  std::atomic<pid_t> thread{0};  // 0: free
  std::atomic<bool> runs{false};
  std::atomic<bool> may_be_lost{false}, is_lost{false};
};

constinit std::array<Place, kPlaces> g_places;
constinit std::atomic<bool> g_keep{false};
constinit std::atomic<bool> g_mask_known{false};
constinit sigset_t g_program_mask{};

// A detached thread cannot be joined, and what it does between its body's return and its end are
// system calls.
bool IsInKernel(pid_t thread) {
  return thread == kComing || syscall(SYS_tgkill, getpid(), thread, 0) == 0;
}

size_t TakePlace(bool may_be_lost) {
  for (size_t i = 0; i < kPlaces; ++i) {
    pid_t before = g_places[i].thread.load();
    if (before != 0 && (g_places[i].runs.load() || IsInKernel(before))) continue;
    if (!g_places[i].thread.compare_exchange_strong(before, kComing)) continue;
    g_places[i].may_be_lost.store(may_be_lost);
    g_places[i].is_lost.store(false);
    g_places[i].runs.store(true);
    return i;
  }
  return kNoPlace;
}

void LeavePlace(size_t place) {
  if (place == kNoPlace) return;
  g_places[place].runs.store(false);
}

bool StartDetached(size_t stack_bytes, void* (*entry)(void*), void* argument) {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  // We do not go without a thread because of one refused allocation.
  constexpr int kTries = 3;
  pthread_t thread;
  bool started = false;
  for (int i = 0; i < kTries && !started; ++i) {
    started = pthread_create(&thread, &attributes, entry, argument) == 0;
  }
  pthread_attr_destroy(&attributes);
  return started;
}

}  // namespace

bool OwnThread::Start(const Setup& setup) {
  place_ = TakePlace(setup.may_be_lost);
  setup_ = setup;
  // A new thread inherits the mask: blocked by itself, it could take a signal before that.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (!g_mask_known.exchange(true)) g_program_mask = before;
  const bool started = StartDetached(setup.stack_bytes, &Enter, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) {
    LeavePlace(place_);
    if (place_ != kNoPlace) g_places[place_].thread.store(0);
  }
  return started;
}

void* OwnThread::Enter(void* own_thread) {
  const DefaultFloats floats;  // a new thread inherits the traps of the program's
  const Setup& setup = static_cast<OwnThread*>(own_thread)->setup_;
  const size_t place = static_cast<OwnThread*>(own_thread)->place_;
  if (place != kNoPlace) g_places[place].thread.store(static_cast<pid_t>(syscall(SYS_gettid)));
  pthread_setname_np(pthread_self(), setup.name);
  const HiddenFromTsan hidden;
  // POSIX means the process; Linux gives each thread its own nice value.
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), setup.nice);
  (void)Contain(false, [&setup] { return setup.body(setup.owner), true; });
  while (g_keep.load()) pause();
  LeavePlace(place);
  return nullptr;
}

uint32_t OwnThreadsRunning() {
  uint32_t running = 0;
  for (const Place& place : g_places) running += place.runs.load() ? 1 : 0;
  return running;
}

bool WaitForOwnThreadsEnd(uint64_t deadline_ns) {
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  // Twice: the sender may have started another just before its own end.
  for (size_t i = 0; i < 2 * kPlaces; ++i) {
    Place& place = g_places[i % kPlaces];
    for (pid_t thread; (thread = place.thread.load()) != 0 && thread != self;) {
      if (!place.runs.load() && !IsInKernel(thread)) {
        place.thread.store(0);
        break;
      }
      if (place.runs.load() && place.is_lost.load()) break;
      if (ClockNs(CLOCK_MONOTONIC) >= deadline_ns) {
        if (!place.runs.load() || !place.may_be_lost.load()) return false;
        place.is_lost.store(true);
        break;
      }
      constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 50'000};
      nanosleep(&kNap, nullptr);
    }
  }
  return true;
}

void KeepOwnThreads() { g_keep.store(true); }

const sigset_t& ProgramSignalMask() { return g_program_mask; }

}  // namespace ranktap::agent

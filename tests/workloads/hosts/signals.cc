// A program that lives by its signals: a thread waits for them with sigwait, timers fire while
// others work, and what is sent is what arrives.
// usage: signals ROUNDS
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/workloads/hosts/device_work.h"

namespace {

std::atomic<int> g_waited{0}, g_handled{0}, g_alarms{0}, g_strangers{0};
pthread_t g_main;

void OnSignal(int signal) {
  // SIGUSR2 and SIGPROF are blocked in all threads of the program but the main one.
  if (!pthread_equal(pthread_self(), g_main)) ++g_strangers;
  if (signal == SIGPROF) {
    ++g_alarms;
  } else {
    ++g_handled;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: signals ROUNDS\n");
    return 2;
  }
  const int rounds = std::atoi(argv[1]);
  g_main = pthread_self();
  // The device's threads, and ours, start before the program has set anything up.
  start_device(0);
  launch_kernel(nullptr);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, nullptr);
  sigaction(SIGPROF, &action, nullptr);
  sigset_t waited;
  sigemptyset(&waited);
  sigaddset(&waited, SIGUSR1);
  sigaddset(&waited, SIGCHLD);
  sigset_t all = waited;
  sigaddset(&all, SIGUSR2);
  sigaddset(&all, SIGPROF);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::thread waiter([&] {
    for (int i = 0; i < rounds; ++i) {
      int signal = 0;
      if (sigwait(&waited, &signal) == 0 && signal == SIGUSR1) ++g_waited;
    }
  });
  sigset_t handled;
  sigemptyset(&handled);
  sigaddset(&handled, SIGUSR2);
  sigaddset(&handled, SIGPROF);
  pthread_sigmask(SIG_UNBLOCK, &handled, nullptr);
  const itimerval each_ms = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_PROF, &each_ms, nullptr);
  for (int i = 0; i < rounds; ++i) {
    nvtxRangePushA("round");
    launch_kernel(nullptr);
    // One at a time: two of a kind that are pending are one.
    kill(getpid(), SIGUSR1);
    while (g_waited.load() <= i) std::this_thread::yield();
    kill(getpid(), SIGUSR2);
    while (g_handled.load() <= i) std::this_thread::yield();
    nvtxRangePop();
  }
  waiter.join();
  while (g_alarms.load() == 0) launch_kernel(nullptr);
  const itimerval off = {};
  setitimer(ITIMER_PROF, &off, nullptr);
  std::printf("counts waited=%d handled=%d strangers=%d\n", g_waited.load(), g_handled.load(),
              g_strangers.load());
  return 0;
}

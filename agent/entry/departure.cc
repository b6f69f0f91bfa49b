// The end of our threads before that of the process.
// Runs on: see departure.h.  May not: leave a thread of ours behind that the process waits for.
#include "agent/entry/departure.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "agent/core/host_clock.h"
#include "agent/core/own_thread.h"
#include "agent/sources/source.h"

namespace ranktap::agent {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

constinit std::atomic<bool> g_paused{false};
// The sender's.
constinit uint64_t g_look_at_ns = 0;
constinit bool g_outlived = false;  // main has left before other threads of the program
constinit int g_status = 0;         // of main, where it was the last of the program's

// Of this process, a main thread that has left included; 0: not told.
uint64_t ThreadCount() {
  constexpr nlink_t kOfTheFolder = 2;
  struct stat status;
  if (stat("/proc/self/task", &status) != 0 || status.st_nlink <= kOfTheFolder) return 0;
  return status.st_nlink - kOfTheFolder;
}

// A main thread that left is a zombie until the last of the others has. Its exit status, else
// kStillThere.
constexpr int kStillThere = -1;

int StatusOfMain() {
  std::array<char, 1024> text;
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/stat", static_cast<int>(getpid()));
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return kStillThere;
  const ssize_t size = read(file, text.data(), text.size() - 1);
  close(file);
  text[size > 0 ? static_cast<size_t>(size) : 0] = '\0';
  const std::string_view line(text.data());
  // The name before the state may hold parentheses; the status is the last field.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= line.size()) return kStillThere;
  if (line[name_end + 2] != 'Z') return kStillThere;
  return std::atoi(text.data() + line.rfind(' ')) >> 8 & 0xff;
}

// Of the program's own kind: its stack and signal mask are those of its threads, since exit
// handlers may run on it. Where main left by pthread_exit glibc finds that this one is the last,
// and ends the process. A raw exit of main's is not in glibc's count, and since Linux 6.0 the last
// thread's status is the process's: if main was the last of the program's, ours must be as its.
void* BeLast(void*) {
  constexpr uint64_t kPatience = 1'000 * kMillisecond;
  (void)WaitForOwnThreadsEnd(ClockNs(CLOCK_MONOTONIC) + kPatience);
  pthread_sigmask(SIG_SETMASK, &ProgramSignalMask(), nullptr);
  if (g_status != 0) syscall(SYS_exit, g_status);
  return nullptr;
}

}  // namespace

bool ProgramHasLeft() {
  constexpr uint64_t kEvery = 50 * kMillisecond;
  const uint64_t now = ClockNs(CLOCK_MONOTONIC);
  if (now < g_look_at_ns) return false;
  g_look_at_ns = now + kEvery;
  const uint64_t threads = ThreadCount();
  const int status = threads == 0 ? kStillThere : StatusOfMain();
  if (status == kStillThere) return false;
  const bool others = threads > OwnThreadsRunning() + 1;
  g_status = others || g_outlived ? 0 : status;
  g_outlived |= others;
  return !others;
}

void ExitAsLastThread() {
  constexpr uint64_t kPatience = 500 * kMillisecond;
  const uint64_t deadline = ClockNs(CLOCK_MONOTONIC) + kPatience;
  for (const Source& source : AllSources()) source.finish(deadline);
  pthread_attr_t attributes;
  pthread_t last;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&last, &attributes, &BeLast, nullptr) == 0) return;
  }
  pthread_sigmask(SIG_SETMASK, &ProgramSignalMask(), nullptr);
}

void PauseThreads() { g_paused.store(true); }
void ResumeThreads() { g_paused.store(false); }
bool ThreadsMayRun() { return !g_paused.load(); }

bool ProgramIsAlone() { return ThreadCount() == OwnThreadsRunning() + 1; }

}  // namespace ranktap::agent

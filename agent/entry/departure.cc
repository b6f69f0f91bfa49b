// The end of our threads before that of the process.
// Runs on: see departure.h.  May not: leave a thread of ours behind that the process waits for.
#include "agent/entry/departure.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>

#include "agent/core/contain.h"
#include "agent/core/host_clock.h"
#include "agent/core/own_descriptor.h"
#include "agent/core/own_thread.h"
#include "agent/sources/source.h"

namespace ranktap::agent {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;

constinit std::atomic<bool> g_paused{false};
// The sender's.
constinit uint64_t g_look_at_ns = 0;
constinit int g_openings = 0;       // after the first
constinit bool g_outlived = false;  // main has left before other threads of the program
constinit int g_status = 0;         // of main, where it was the last of the program's

// /proc/self/task/PID/stat, opened once: a program may leave /proc behind by chroot, and what is
// opened takes, for a moment, the number that the program is about to be given.
alignas(OwnDescriptor) constinit std::array<std::byte, sizeof(OwnDescriptor)> g_main_memory{};
constinit OwnDescriptor* g_main = nullptr;  // never destroyed

constexpr int kStillThere = -1;

// How the main thread looks.
struct Look {
  // A main thread that left is a zombie until the last of the others has. Its exit status, else
  // kStillThere.
  int status = kStillThere;
  uint64_t threads = 0;  // of the process, that zombie included; 0: not told
};

// A line of /proc; the name before the state may hold spaces and parentheses. The 20th field is the
// number of threads, the last one the exit status.
Look ParseStat(std::string_view line) {
  constexpr int kFromNameToThreads = 18;
  Look look;
  const size_t name_end = line.rfind(')');
  if (name_end == std::string_view::npos || name_end + 2 >= line.size()) return look;
  size_t at = name_end;
  for (int i = 0; i < kFromNameToThreads && at != line.npos; ++i) at = line.find(' ', at + 1);
  if (at == line.npos) return look;
  look.threads = std::strtoull(line.data() + at, nullptr, 10);
  if (line[name_end + 2] != 'Z') return look;
  look.status = std::atoi(line.data() + line.rfind(' ')) >> 8 & 0xff;
  return look;
}

Look LookAtMain() {
  std::array<char, 1024> text;
  // Not pread: a thread of the program's would be cancelled in it, inside of its dlsym or of NVTX's
  // start.
  const auto size =
      static_cast<ssize_t>(syscall(SYS_pread64, g_main->get(), text.data(), text.size() - 1, 0));
  if (size <= 0) return {};
  text[static_cast<size_t>(size)] = '\0';
  return ParseStat({text.data(), static_cast<size_t>(size)});
}

// The thread is of the program's own kind: its stack and signal mask are those of its threads,
// since exit handlers may run on it. If main left by pthread_exit, glibc finds that this thread is
// the last, and ends the process. A raw exit of main's is not in glibc's count, and since Linux 6.0
// the last thread's status is the process's: if main was the last of the program's, ours must be as
// its.
void* BeLast(void*) {
  constexpr uint64_t kPatience = 1'000 * kMillisecond;
  (void)WaitForOwnThreadsEnd(ClockNs(CLOCK_MONOTONIC) + kPatience);
  pthread_sigmask(SIG_SETMASK, &ProgramSignalMask(), nullptr);
  if (g_status != 0) syscall(SYS_exit, g_status);
  return nullptr;
}

}  // namespace

void WatchProgram() {
  std::array<char, 64> path;
  std::snprintf(path.data(), path.size(), "/proc/self/task/%d/stat", static_cast<int>(getpid()));
  if (g_main == nullptr) g_main = new (g_main_memory.data()) OwnDescriptor;
  g_main->Adopt(open(path.data(), O_RDONLY | O_CLOEXEC));
}

void StopWatchingProgramInForkChild() { g_main->CloseInForkChild(); }

bool ProgramHasLeft() {
  constexpr uint64_t kEvery = 50 * kMillisecond;
  // A program that closes what it does not know has closed it for a reason.
  constexpr int kMostOpenings = 4;
  const uint64_t now = ClockNs(CLOCK_MONOTONIC);
  if (now < g_look_at_ns) return false;
  g_look_at_ns = now + kEvery;
  if (g_main->get() < 0 && g_openings < kMostOpenings) {
    ++g_openings;
    WatchProgram();
  }
  const Look look = LookAtMain();
  if (look.status == kStillThere) return false;
  const bool others = look.threads > OwnThreadsRunning() + 1;
  g_status = others || g_outlived ? 0 : look.status;
  g_outlived |= others;
  return !others;
}

void FinishSources(uint64_t deadline_ns) {
  for (const Source& source : AllSources()) {
    (void)Contain(false, [&source, deadline_ns] { return source.finish(deadline_ns), true; });
  }
}

void ExitAsLastThread() {
  constexpr uint64_t kPatience = 500 * kMillisecond;
  FinishSources(ClockNs(CLOCK_MONOTONIC) + kPatience);
  // Else this thread would have to be the last: one refused allocation does not justify that.
  constexpr int kTries = 3;
  pthread_attr_t attributes;
  pthread_t last;
  if (pthread_attr_init(&attributes) == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int i = 0; i < kTries; ++i) {
      if (pthread_create(&last, &attributes, &BeLast, nullptr) == 0) return;
    }
  }
  pthread_sigmask(SIG_SETMASK, &ProgramSignalMask(), nullptr);
}

void PauseThreads() { g_paused.store(true); }
void ResumeThreads() { g_paused.store(false); }
bool ThreadsMayRun() { return !g_paused.load(); }

bool ProgramIsAlone() { return LookAtMain().threads == OwnThreadsRunning() + 1; }

}  // namespace ranktap::agent

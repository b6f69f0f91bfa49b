// Programs that leave a profiler's threads little to work with, and go on using NVTX.
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "tests/workloads/hosts/hostile.h"

namespace hostile {
namespace {

constexpr int kMillisecond = 1'000;

// A range of a new name each time, for so long that whoever looks once in a while has looked.
void MarkFor(int milliseconds) {
  for (int i = 0; i < milliseconds; ++i) {
    char name[32];
    std::snprintf(name, sizeof(name), "range %d", i);
    nvtxRangePushA(name);
    nvtxRangePop();
    usleep(kMillisecond);
  }
}

// Everything up to the limit, in pieces down to those that a heap is made of.
void* TakeAllMemory() {
  void* taken = nullptr;
  for (size_t bytes = 1 << 20; bytes >= 16; bytes /= 2) {
    while (void** const piece = static_cast<void**>(std::malloc(bytes))) {
      *piece = taken;
      taken = piece;
    }
  }
  return taken;
}

void GiveBack(void* taken) {
  while (taken != nullptr) {
    void* const next = *static_cast<void**>(taken);
    std::free(taken);
    taken = next;
  }
}

uint64_t DataBytes() {
  char text[256] = {};
  unsigned long all = 0, pages[5] = {};
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  (void)!std::fread(text, 1, sizeof(text) - 1, file);
  std::fclose(file);
  std::sscanf(text, "%lu %lu %lu %lu %lu %lu", &all, &pages[0], &pages[1], &pages[2], &pages[3],
              &pages[4]);
  return pages[4] * 4096;
}

// Until NULL, while a thread of its own works and begins others.
int RunOutOfMemory() {
  Mark();
  const uint64_t now = DataBytes();
  const rlimit limit{.rlim_cur = now + (4 << 20), .rlim_max = RLIM_INFINITY};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) return 77;
  for (int round = 0; round < 3; ++round) {
    void* const taken = TakeAllMemory();
    MarkFor(150);
    GiveBack(taken);
    MarkFor(50);
  }
  std::printf("three times without memory\n");
  return 0;
}

void MarkOften(int times) {
  for (int i = 0; i < times; ++i) {
    Mark();
    usleep(kMillisecond / 10);
  }
}

// Any inexact division is death, on a thread that begins now too, and where threads and the process
// end. Longer than whoever divides once a second needs, with counts that nothing divides.
int TrapEverything() {
  if (feenableexcept(FE_ALL_EXCEPT) < 0) return 77;
  std::thread(MarkOften, 131).join();
  MarkOften(9'973);
  std::printf("nothing was divided\n");
  return 0;
}

// The lowest number is this program's: whoever opens a file between the two calls takes it.
int LossesOfTheLowestDescriptor() {
  int lost = 0;
  const int lowest = open("/dev/null", O_RDONLY);
  for (int looks = 0; looks < 300'000; ++looks) {
    if (looks % 1000 == 0) Mark();
    close(lowest);
    const int again = open("/dev/null", O_RDONLY);
    if (again == lowest) continue;
    ++lost;
    close(again);
    while (open("/dev/null", O_RDONLY) < lowest) {
    }
  }
  close(lowest);
  return lost;
}

// A start may open files, on a thread of its own and for as long as a busy machine makes it last:
// so what counts is the first round that loses nothing, and the last where each loses something.
int TakeTheLowestDescriptor() {
  Mark();
  int lost = LossesOfTheLowestDescriptor();
  for (int rounds = 1; rounds < 20 && lost > 0; ++rounds) lost = LossesOfTheLowestDescriptor();
  std::printf("lost %d times\n", lost);
  return 0;
}

// As a stray memset would, but all of it: what is mapped from an anonymous file that is not ours.
int WriteOverSharedMemory() {
  MarkFor(300);
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (maps != nullptr && std::fgets(line, sizeof(line), maps) != nullptr) {
    unsigned long start = 0, end = 0;
    if (std::strstr(line, "/memfd:") == nullptr) continue;
    if (std::sscanf(line, "%lx-%lx", &start, &end) != 2) continue;
    std::memset(reinterpret_cast<void*>(start), 0x5a, 256 << 10);
  }
  if (maps != nullptr) std::fclose(maps);
  MarkFor(50);
  std::printf("written over\n");
  return 0;
}

// Threads and forked children beside it.
int Work() {
  pthread_t thread;
  const auto run = [](void*) -> void* { return MarkFor(60), nullptr; };
  Mark();
  MarkFor(60);
  if (pthread_create(&thread, nullptr, run, nullptr) != 0) return 1;
  const pid_t child = fork();
  if (child == 0) {
    Mark();
    std::_Exit(4);
  }
  int status = 0;
  waitpid(child, &status, 0);
  MarkFor(60);
  pthread_join(thread, nullptr);
  std::printf("worked, the child ended with %d\n", WEXITSTATUS(status));
  return 0;
}

}  // namespace

int WorkWith(const char* how) {
  if (std::strcmp(how, "little") == 0) return RunOutOfMemory();
  if (std::strcmp(how, "traps") == 0) return TrapEverything();
  if (std::strcmp(how, "lowest") == 0) return TakeTheLowestDescriptor();
  if (std::strcmp(how, "smash") == 0) return WriteOverSharedMemory();
  return Work();
}

// /proc is gone when main leaves. What pthread_exit needs is loaded before.
int LeaveWithoutProc() {
  pthread_t thread;
  const auto leave = [](void*) -> void* { pthread_exit(nullptr); };
  if (pthread_create(&thread, nullptr, leave, nullptr) == 0) pthread_join(thread, nullptr);
  Mark();
  char folder[] = "/tmp/hostile.XXXXXX";
  if (mkdtemp(folder) == nullptr || chroot(folder) != 0) {
    std::fprintf(stderr, "no chroot\n");
    return 77;
  }
  std::printf("main leaves\n");
  std::fflush(stdout);
  pthread_exit(nullptr);
}

}  // namespace hostile

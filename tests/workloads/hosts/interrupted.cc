// A program whose NVTX calls are cut off: by signal handlers that make such calls themselves, that
// leave by siglongjmp or fork, by cancellation, by a child that shares the memory.
// usage: interrupted handlers SIGNALS [alternate]   interrupted longjmp JUMPS
//        interrupted cancel THREADS                 interrupted fork|_Fork|raw CHILDREN
//        interrupted clone CHILDREN                 interrupted descriptors SECONDS [ends]
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

volatile sig_atomic_t g_signals = 0;
volatile sig_atomic_t g_is_child = 0;
volatile sig_atomic_t g_failed = 0;
sigjmp_buf g_back;
const char* g_way = "";

// Names that come again are found by their pointer, others by their text: both are interrupted.
void Range() {
  static const std::string names[] = {"one", "two", "three", "four"};
  static unsigned next = 0;
  char fresh[32];
  std::snprintf(fresh, sizeof(fresh), "name %u", next++ % 1000);
  nvtxRangePushA(names[next % 4].c_str());
  nvtxRangePushA(fresh);
  nvtxRangePop();
  nvtxRangePop();
}

void Every(int microseconds, void (*handler)(int), bool alternate) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART | (alternate ? SA_ONSTACK : 0);
  sigaction(SIGALRM, &action, nullptr);
  const itimerval timer = {{0, microseconds}, {0, microseconds}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

void Stop() {
  const itimerval off = {};
  setitimer(ITIMER_REAL, &off, nullptr);
}

void EmitInHandler(int) {
  Range();
  g_signals = g_signals + 1;
}

int Handlers(int signals, bool alternate) {
  static char stack[64 << 10];
  const stack_t other = {.ss_sp = stack, .ss_flags = 0, .ss_size = sizeof(stack)};
  if (alternate) sigaltstack(&other, nullptr);
  Every(150, EmitInHandler, alternate);
  while (g_signals < signals) Range();
  Stop();
  std::printf("counts done=1\n");
  return 0;
}

void JumpOut(int) {
  g_signals = g_signals + 1;
  siglongjmp(g_back, 1);
}

int LongJumps(int jumps) {
  Every(150, JumpOut, /*alternate=*/false);
  sigsetjmp(g_back, 1);
  while (g_signals < jumps) Range();
  Stop();
  for (int i = 0; i < 1000; ++i) {
    nvtxRangePushA("after the jumps");
    nvtxRangePop();
    usleep(1000);  // what came before fills the ring
  }
  std::printf("counts done=1\n");
  return 0;
}

void* WorkUntilCancelled(void* rounds) {
  nvtxRangePushA("a thread's first");
  nvtxRangePop();
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
  while (true) {
    static_cast<std::atomic<int>*>(rounds)->fetch_add(1);
    nvtxRangePushA("a range that may be cut off");
    nvtxRangePop();
  }
}

int Cancellations(int threads) {
  int cancelled = 0;
  for (int i = 0; i < threads; ++i) {
    std::atomic<int> rounds{0};
    pthread_t thread;
    if (pthread_create(&thread, nullptr, WorkUntilCancelled, &rounds) != 0) return 1;
    while (rounds.load() < 1000 + i) sched_yield();
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    cancelled += result == PTHREAD_CANCELED;
  }
  std::printf("counts cancelled=%d\n", cancelled);
  return 0;
}

pid_t MakeChild() {
  if (std::strcmp(g_way, "fork") == 0) return fork();
#if __GLIBC_PREREQ(2, 34)
  if (std::strcmp(g_way, "_Fork") == 0) return _Fork();
#endif
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

// The child goes on where the handler interrupted the program.
void ForkInHandler(int) {
  const pid_t child = MakeChild();
  if (child == 0) {
    g_is_child = 1;
    return;
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) g_failed = status | 1;
  g_signals = g_signals + 1;
}

int ForksInHandlers(int children) {
  Every(1000, ForkInHandler, /*alternate=*/false);
  while (g_signals < children) {
    Range();
    if (g_is_child != 0) {
      for (int i = 0; i < 100; ++i) Range();
      _exit(0);
    }
  }
  Stop();
  std::printf("counts failed=%d\n", g_failed);
  return g_failed != 0 ? 1 : 0;
}

int EmitAsClone(void*) {
  for (int i = 0; i < 20'000; ++i) {
    nvtxRangePushA("in a child with the parent's memory");
    nvtxRangePop();
  }
  _exit(0);
}

int Clones(int children) {
  static char stack[256 << 10];
  int failed = 0;
  Range();
  for (int i = 0; i < children; ++i) {
    const pid_t child = clone(EmitAsClone, stack + sizeof(stack), CLONE_VM | SIGCHLD, nullptr);
    if (child < 0) return 1;
    for (int j = 0; j < 20'000; ++j) {
      nvtxRangePushA("beside a child with our memory");
      nvtxRangePop();
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) ++failed;
  }
  std::printf("counts failed=%d\n", failed);
  return failed;
}

// A daemon's habit, again and again: closes every descriptor but the first three, the socket to a
// collector and the file that takes its place among them.
int Descriptors(int seconds, bool ends_in_between) {
  std::atomic<bool> stop{false};
  std::thread closes([&] {
    for (int i = 0; i < seconds * 200; ++i) {
      usleep(5'000);
      syscall(SYS_close_range, 3, ~0u, 0);
    }
    // A peace in which whoever lost a connection makes it anew.
    if (!ends_in_between) sleep(2);
    stop = true;
  });
  while (!stop.load()) {
    for (int i = 0; i < 200; ++i) Range();
    usleep(1000);
  }
  closes.join();
  std::printf("counts done=1\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: interrupted WAY COUNT [alternate]\n");
    return 2;
  }
  g_way = argv[1];
  const int count = std::atoi(argv[2]);
  Range();
  if (std::strcmp(g_way, "handlers") == 0) return Handlers(count, argc > 3);
  if (std::strcmp(g_way, "longjmp") == 0) return LongJumps(count);
  if (std::strcmp(g_way, "cancel") == 0) return Cancellations(count);
  if (std::strcmp(g_way, "clone") == 0) return Clones(count);
  if (std::strcmp(g_way, "descriptors") == 0) return Descriptors(count, argc > 3);
  return ForksInHandlers(count);
}

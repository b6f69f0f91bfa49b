// A program for each way to live that a profiler can spoil. It uses NVTX only and knows nothing of
// ranktap. What it prints, and its end, are the same in every run without a profiler.
// usage: hostile CASE [ARGUMENT]
//   leave HOW         exit, late, raw, rawlate, term: main leaves by pthread_exit or SYS_exit,
//   alone
//                     or before a thread that ends later, or that SIGTERM ends
//   fork HOW          fork, _Fork, raw, clone: children are made while the first NVTX call runs
//   storm HOW         the same from 24 threads
//   children HOW      the same after the first call
//   lock HOW          strict, tight, own, dlsym, tsc: seccomp and PR_SET_TSC, then more NVTX and
//   the end namespaces FILE   12 dlmopen of the plugin FILE, every second one closed again
//   usernamespace     unshare(CLONE_NEWUSER) after the first event
//   work HOW          with little (memory), traps (of the FPU), lowest (descriptor), smash (the
//                     profiler's memory), threads and children
//   leavenoproc       main leaves by pthread_exit where there is no /proc (root)
#include "tests/workloads/hosts/hostile.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace hostile {
namespace {

void* WorkOn(void*) {
  for (int i = 0; i < 20; ++i) {
    Mark();
    usleep(10'000);
  }
  std::printf("the thread ends\n");
  std::fflush(stdout);
  return nullptr;
}

void* WaitForSignals(void*) {
  for (;;) pause();
}

// From a child: SIGTERM, when main has left.
void TerminateLater() {
  const pid_t program = getpid();
  if (fork() != 0) return;
  for (;; usleep(10'000)) {
    char path[64], text[512] = {};
    std::snprintf(path, sizeof(path), "/proc/%d/stat", program);
    std::FILE* const file = std::fopen(path, "r");
    if (file == nullptr) std::_Exit(0);
    (void)!std::fread(text, 1, sizeof(text) - 1, file);
    std::fclose(file);
    if (std::strstr(text, ") Z") == nullptr) continue;
    kill(program, SIGTERM);
    std::_Exit(0);
  }
}

}  // namespace

int LeaveMain(const char* how) {
  if (std::strcmp(how, "term") == 0) TerminateLater();
  std::atexit([] {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    std::printf("at exit, SIGTERM %s\n", sigismember(&blocked, SIGTERM) ? "blocked" : "open");
  });
  Mark();
  std::printf("main leaves\n");
  std::fflush(stdout);
  if (std::strstr(how, "late") != nullptr) {
    pthread_t thread;
    pthread_create(&thread, nullptr, &WorkOn, nullptr);
  }
  if (std::strcmp(how, "term") == 0) {
    pthread_t thread;
    pthread_create(&thread, nullptr, &WaitForSignals, nullptr);
  }
  if (std::strncmp(how, "raw", 3) == 0) syscall(SYS_exit, 7);
  pthread_exit(nullptr);
}

// A namespace holds a copy of the plugin, of its libc and of whatever NVTX loads there.
int OpenNamespaces(const char* plugin, int count) {
  int opened = 0;
  for (int i = 0; i < count; ++i) {
    Mark();
    void* const handle = dlmopen(LM_ID_NEWLM, plugin, RTLD_NOW);
    if (handle == nullptr) {
      std::printf("dlmopen %d: %s\n", i, dlerror());
      continue;
    }
    ++opened;
    using Work = int (*)();
    const auto work = reinterpret_cast<Work>(dlsym(handle, "plugin_work"));
    if (work == nullptr || work() != 3) std::printf("plugin %d does not work\n", i);
    if (i % 2 == 1) dlclose(handle);
  }
  std::printf("%d of %d opened\n", opened, count);
  return 0;
}

int EnterUserNamespace() {
  Mark();
  const int result = unshare(CLONE_NEWUSER);
  std::printf("unshare: %s\n", result == 0 ? "done" : std::strerror(errno));
  Mark();
  return 0;
}

}  // namespace hostile

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : "";
  const char* const how = argc > 2 ? argv[2] : "";
  const auto is = [name](const char* other) { return std::strcmp(name, other) == 0; };
  if (is("leave")) return hostile::LeaveMain(how);
  if (is("fork")) return hostile::ForkAtStart(how, 1);
  if (is("storm")) return hostile::ForkAtStart(how, 24);
  if (is("children")) return hostile::ForkLater(how);
  if (is("lock")) return hostile::LockUp(how);
  if (is("namespaces")) return hostile::OpenNamespaces(how, 12);
  if (is("usernamespace")) return hostile::EnterUserNamespace();
  if (is("work")) return hostile::WorkWith(how);
  if (is("leavenoproc")) return hostile::LeaveWithoutProc();
  std::fprintf(
      stderr,
      "usage: hostile leave|fork|storm|lock|namespaces|usernamespace|work|leavenoproc [HOW]\n");
  return 2;
}

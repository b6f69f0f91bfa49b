// Hooks in Python's own table: of its forks, of the file that it counts in, and of what its
// subprocess module, which does not count, does next. Runs on: see python_forks.h.  May not: leave
// errno changed.
#include "agent/entry/python_forks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <span>

#include "agent/interpose/got_patcher.h"

namespace ranktap::agent {
namespace {

constinit ConfinementDuties g_duties{};
constinit std::atomic<bool> g_counts{false};  // ours are away until Python has counted

void ComeBack() {
  if (!g_counts.load(std::memory_order_relaxed) || !g_counts.exchange(false)) return;
  const int saved_errno = errno;
  g_duties.resume();
  errno = saved_errno;
}

// Python counts where it failed, too.
template <typename Fork>
pid_t Alone(Fork&& fork_now) {
  const bool paused = g_duties.pause(Pauses::kIfAlone);
  const pid_t child = fork_now();
  if (child != 0 && paused) g_counts.store(true);
  return child;
}

pid_t HookFork() {
  return Alone([] { return fork(); });
}

using ForkPty = pid_t (*)(int*, char*, const termios*, const winsize*);
constinit ForkPty g_forkpty = nullptr;  // of libutil, before glibc 2.34

pid_t HookForkPty(int* master, char* name, const termios* modes, const winsize* size) {
  return Alone([=] { return g_forkpty(master, name, modes, size); });
}

FILE* HookOpen(const char* path, const char* mode) {
  FILE* const file = fopen(path, mode);
  if (file == nullptr) ComeBack();
  return file;
}

int HookClose(FILE* file) {
  const int result = fclose(file);
  ComeBack();
  return result;
}

int HookCloseDescriptor(int descriptor) {
  ComeBack();
  return close(descriptor);
}

ssize_t HookRead(int descriptor, void* bytes, size_t size) {
  ComeBack();
  return read(descriptor, bytes, size);
}

template <typename Function>
GotHook Of(std::string_view symbol, Function* function) {
  return {.symbol = symbol, .replacement = reinterpret_cast<void*>(function)};
}

}  // namespace

void InstallPythonForkHooks(const ConfinementDuties& duties) {
  if (g_duties.pause != nullptr) return;
  constexpr unsigned long kFirstThatCounts = 0x030c'0000;
  const auto* const version = static_cast<const unsigned long*>(dlsym(RTLD_DEFAULT, "Py_Version"));
  if (version == nullptr || *version < kFirstThatCounts) return;
  g_duties = duties;
  g_forkpty = reinterpret_cast<ForkPty>(dlsym(RTLD_DEFAULT, "forkpty"));
  const std::array<GotHook, 7> hooks = {Of("fork", &HookFork),
                                        Of("fopen", &HookOpen),
                                        Of("fopen64", &HookOpen),
                                        Of("fclose", &HookClose),
                                        Of("close", &HookCloseDescriptor),
                                        Of("read", &HookRead),
                                        Of("forkpty", &HookForkPty)};
  (void)PatchModuleOf(version, std::span(hooks).first(g_forkpty == nullptr ? 6 : 7));
}

}  // namespace ranktap::agent

// Hooks in Python's own table, of fork and of the file that it counts in.
// Runs on: see python_forks.h.  May not: leave errno changed.
#include "agent/entry/python_forks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

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
pid_t HookFork() {
  const bool paused = g_duties.pause(Pauses::kIfAlone);
  const pid_t child = fork();
  if (child != 0 && paused) g_counts.store(true);
  return child;
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
  const std::array<GotHook, 4> hooks = {Of("fork", &HookFork), Of("fopen", &HookOpen),
                                        Of("fopen64", &HookOpen), Of("fclose", &HookClose)};
  (void)PatchModuleOf(version, hooks);
}

}  // namespace ranktap::agent

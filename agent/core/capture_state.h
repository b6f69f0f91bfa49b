// Whether to record at all: one word, tested first in every hook. It lies in a page that a fork
// child finds zeroed (MADV_WIPEONFORK), so a child records nothing whichever way it was forked:
// pthread_atfork handlers do not run for a raw fork system call or _Fork. Kernels before 4.14 and
// gVisor have no such page: there the lifecycle's fork handlers and hooks call GoQuiet.
// Runs on: any user thread.  May not: allocate, lock, log, call CUDA.
#pragma once

#include <atomic>
#include <cstdint>

namespace ranktap::agent {

// Bits of what is being captured.
enum Capture : uint32_t {
  kCaptureRanges = 1u << 0,     // NVTX
  kCaptureCuda = 1u << 1,       // CUDA callbacks and activities
  kCaptureFramework = 1u << 2,  // what the framework's own hooks see
  kCaptureAlive = 1u << 31,     // the agent runs in this process: not a fork child
};

struct CapturePage {
  std::atomic<uint32_t> mask;
  // Not 0 in the process that mapped the page, to its end: GoQuiet leaves it.
  std::atomic<uint32_t> unforked;
};

// Points to a zero word until Start maps the page; never unmapped.
extern std::atomic<CapturePage*> g_capture_page;

inline uint32_t CaptureMask() {
  return g_capture_page.load(std::memory_order_relaxed)->mask.load(std::memory_order_relaxed);
}
inline bool Capturing(Capture what) { return (CaptureMask() & what) != 0; }

// False in a child that a signal handler forked while a hook of ours was at work below it: the hook
// goes on in the child, where the rings are the parent's. Tested again right before each store.
inline bool InOwnProcess() {
  return g_capture_page.load(std::memory_order_relaxed)->unforked.load(std::memory_order_relaxed) !=
         0;
}

// Maps the page and sets kCaptureAlive. False: no memory.
[[nodiscard]] bool MapCapturePage();

// Whether a fork child finds it zeroed. After MapCapturePage.
bool CapturePageTellsForks();

// Sets and clears bits; no effect in a fork child.
void SetCapture(uint32_t bits);
void ClearCapture(uint32_t bits);

// Stops recording for good, from any thread, without waiting: what is left to do on doubt.
inline void GoQuiet() {
  g_capture_page.load(std::memory_order_relaxed)->mask.store(0, std::memory_order_relaxed);
}

// In a fork child whose page was not wiped.
inline void TellForked() {
  g_capture_page.load(std::memory_order_relaxed)->unforked.store(0, std::memory_order_relaxed);
}

}  // namespace ranktap::agent

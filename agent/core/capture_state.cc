// The page behind capture_state.h.
// Runs on: the thread that starts the agent; the sender.  May not: run in a constructor.
#include "agent/core/capture_state.h"

#include <sys/mman.h>

namespace ranktap::agent {
namespace {

constinit CapturePage never_capturing{};
constinit bool g_page_tells_forks = false;

}  // namespace

constinit std::atomic<CapturePage*> g_capture_page{&never_capturing};

bool MapCapturePage() {
  constexpr size_t kPageBytes = 4096;
  void* page =
      mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  g_page_tells_forks = madvise(page, kPageBytes, MADV_WIPEONFORK) == 0;
  auto* capture = static_cast<CapturePage*>(page);
  capture->mask.store(kCaptureAlive, std::memory_order_relaxed);
  capture->unforked.store(1, std::memory_order_relaxed);
  g_capture_page.store(capture, std::memory_order_release);
  return true;
}

bool CapturePageTellsForks() { return g_page_tells_forks; }

// A fork between the test and the change would give a child a bit without kCaptureAlive; only the
// starting thread and the sender come here, and neither forks.
void SetCapture(uint32_t bits) {
  auto& mask = g_capture_page.load(std::memory_order_relaxed)->mask;
  if ((mask.load(std::memory_order_relaxed) & kCaptureAlive) != 0) mask.fetch_or(bits);
}

void ClearCapture(uint32_t bits) {
  g_capture_page.load(std::memory_order_relaxed)->mask.fetch_and(~bits);
}

}  // namespace ranktap::agent

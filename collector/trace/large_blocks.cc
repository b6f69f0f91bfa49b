// The global operator new of the program this is linked into: after KeepLargeBlocks, large blocks
// that were given back are kept for the next that asks.
//
// Reports make and drop arrays of tens of megabytes. malloc returns each to the kernel at once,
// and the next one is faulted in and cleared page by page: half of the time of the core reports of
// 10 M events. Huge pages (madvise) were tried and rejected: where memory is fragmented the kernel
// compacts it inside the fault, and loading took twice as long.
#include "collector/trace/large_blocks.h"

#include <malloc.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>

// A sanitizer's own operator new checks more than ours could gain.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RANKTAP_SANITIZED
#endif
#endif
#if !defined(RANKTAP_SANITIZED) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

constexpr size_t kLarge = size_t{1} << 20, kMostKept = size_t{512} << 20;

class LargeBlocks {
 public:
  // Null: none fits without wasting more than it uses.
  void* Take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    Block* best = nullptr;
    for (Block& block : blocks_) {
      if (block.bytes < bytes || block.bytes / 2 > bytes) continue;
      if (best == nullptr || block.bytes < best->bytes) best = &block;
    }
    if (best == nullptr) return nullptr;
    kept_ -= best->bytes;
    return std::exchange(*best, Block()).memory;
  }
  // False: there is no room for it.
  bool Keep(void* memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (kept_ + bytes > kMostKept) return false;
    for (Block& block : blocks_) {
      if (block.memory != nullptr) continue;
      block = {memory, bytes};
      kept_ += bytes;
      return true;
    }
    return false;
  }

 private:
  struct Block {
    void* memory = nullptr;
    size_t bytes = 0;
  };
  std::mutex mutex_;
  std::array<Block, 32> blocks_{};
  size_t kept_ = 0;
};

constinit LargeBlocks large_blocks;
constinit std::atomic<bool> keeping{false};

}  // namespace

void ranktap::collector::KeepLargeBlocks() { keeping.store(true); }

void* operator new(size_t bytes) {
  if (bytes >= kLarge && keeping.load(std::memory_order_relaxed)) {
    if (void* const kept = large_blocks.Take(bytes)) return kept;
  }
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory == nullptr) return;
  const size_t bytes = ::malloc_usable_size(memory);
  if (bytes < kLarge || !keeping.load(std::memory_order_relaxed) ||
      !large_blocks.Keep(memory, bytes)) {
    std::free(memory);
  }
}
void operator delete(void* memory, size_t bytes) noexcept {
  bytes < kLarge ? std::free(memory) : operator delete(memory);
}

#else

void ranktap::collector::KeepLargeBlocks() {}

#endif

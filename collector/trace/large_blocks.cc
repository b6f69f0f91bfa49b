// The global operator new of the program this is linked into: after KeepLargeBlocks, large blocks
// that were given back are kept for the next that asks.
//
// Reports make and drop arrays of tens of megabytes. malloc returns each to the kernel at once,
// and the next one is faulted in and cleared page by page: half of the time of the core reports of
// 10 M events. A report of 64 ranks of 1 M events had twice as many page faults, and took a tenth
// longer, when blocks were kept from 1 MiB on. Huge pages (madvise) were tried and rejected: where
// memory is fragmented the kernel compacts it inside the fault, and loading took twice as long.
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

constexpr size_t kLarge = size_t{1} << 16, kMostKept = size_t{512} << 20;

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
  // Returns what is not kept: null, this memory, or a smaller block that was kept so far.
  void* Keep(void* memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (kept_ + bytes > kMostKept) return memory;
    Block* smallest = &blocks_[0];
    for (Block& block : blocks_) {
      if (block.bytes < smallest->bytes) smallest = &block;
    }
    if (smallest->bytes >= bytes) return memory;
    kept_ += bytes - smallest->bytes;
    return std::exchange(*smallest, Block{memory, bytes}).memory;
  }

 private:
  struct Block {
    void* memory = nullptr;
    size_t bytes = 0;
  };
  std::mutex mutex_;
  std::array<Block, 64> blocks_{};
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
  const bool is_kept = bytes >= kLarge && keeping.load(std::memory_order_relaxed);
  std::free(is_kept ? large_blocks.Keep(memory, bytes) : memory);
}
void operator delete(void* memory, size_t bytes) noexcept {
  bytes < kLarge ? std::free(memory) : operator delete(memory);
}

#else

void ranktap::collector::KeepLargeBlocks() {}

#endif

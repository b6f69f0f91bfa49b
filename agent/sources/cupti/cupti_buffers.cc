// The pool.
// Runs on: see cupti_buffers.h.  May not: allocate after Create.
#include "agent/sources/cupti/cupti_buffers.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "agent/core/futex.h"
#include "agent/core/host_clock.h"

namespace ranktap::agent::cupti {

bool BufferPool::Create(size_t total_bytes, bool may_refuse) {
  if (memory_ != nullptr) return true;
  may_refuse_ = may_refuse;
  count_ = static_cast<uint32_t>(total_bytes / kBufferBytes);
  if (count_ > kMaxBuffers) count_ = kMaxBuffers;
  batch_ = std::clamp(count_ / 4, 1u, kMostInABatch);
  const size_t pool_bytes = size_t{count_} * kBufferBytes;
  const size_t discard_bytes = (kDiscardBuffers + 1) * kDiscardBytes;
  const size_t table_bytes = (size_t{count_} + kDiscardBuffers) * sizeof(Buffer);
  void* memory = mmap(nullptr, pool_bytes + discard_bytes + table_bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return false;
  // The drain thread touches the rest as it recycles; the first eight must not fault on the
  // program's threads.
  constexpr size_t kTouched = 8 * kBufferBytes;
  (void)madvise(memory, kTouched < pool_bytes ? kTouched : pool_bytes, MADV_POPULATE_WRITE);
  memory_ = static_cast<uint8_t*>(memory);
  discard_memory_ = memory_ + pool_bytes;
  buffers_ = reinterpret_cast<Buffer*>(discard_memory_ + discard_bytes);
  for (uint32_t i = 0; i < count_; ++i) {
    new (&buffers_[i]) Buffer{.data = memory_ + size_t{i} * kBufferBytes, .index = i};
    free_[i / 64].fetch_or(uint64_t{1} << (i % 64), std::memory_order_release);
  }
  for (uint32_t i = 0; i < kDiscardBuffers; ++i) {
    new (&buffers_[count_ + i])
        Buffer{.data = discard_memory_ + i * kDiscardBytes, .discard = true, .index = count_ + i};
  }
  free_count_.store(count_, std::memory_order_relaxed);
  free_discard_.store((1u << kDiscardBuffers) - 1, std::memory_order_release);
  return true;
}

void BufferPool::CountTaken(uint32_t slots) {
  const uint32_t before = free_count_.fetch_sub(slots, std::memory_order_relaxed);
  const bool became_low = before > count_ / 4 && before - slots <= count_ / 4;
  if (became_low && !running_low_.exchange(true, std::memory_order_relaxed)) Wake();
}

// From the far end, where no single ones have been taken.
uint8_t* BufferPool::TakeLarge(size_t* bytes) {
  constexpr uint64_t kAll = (uint64_t{1} << kSlotsOfLarge) - 1;
  for (uint32_t word = (count_ - 1) / 64 + 1; word-- > 0;) {
    uint64_t free = free_[word].load(std::memory_order_relaxed);
    for (uint32_t at = 64; at >= kSlotsOfLarge;) {
      at -= kSlotsOfLarge;
      while ((free >> at & kAll) == kAll) {
        if (!free_[word].compare_exchange_weak(free, free & ~(kAll << at),
                                               std::memory_order_acquire)) {
          continue;
        }
        *bytes = kSlotsOfLarge * kBufferBytes;
        CountTaken(kSlotsOfLarge);
        buffers_[word * 64 + at].slots = kSlotsOfLarge;
        return buffers_[word * 64 + at].data;
      }
    }
  }
  return nullptr;
}

uint8_t* BufferPool::TakeFree(size_t* bytes, bool large) {
  uint8_t* const taken = Take(bytes, large);
  if (taken != nullptr) lent_.fetch_add(1, std::memory_order_relaxed);
  return taken;
}

uint8_t* BufferPool::Take(size_t* bytes, bool large) {
  if (uint8_t* const four = large ? TakeLarge(bytes) : nullptr) return four;
  for (uint32_t word = 0; word <= (count_ - 1) / 64; ++word) {
    uint64_t free = free_[word].load(std::memory_order_relaxed);
    while (free != 0) {
      const int bit = std::countr_zero(free);
      if (free_[word].compare_exchange_weak(free, free & ~(uint64_t{1} << bit),
                                            std::memory_order_acquire)) {
        *bytes = kBufferBytes;
        CountTaken(1);
        return buffers_[word * 64 + static_cast<uint32_t>(bit)].data;
      }
    }
  }
  *bytes = kDiscardBytes;
  uint32_t free = free_discard_.load(std::memory_order_relaxed);
  while (free != 0) {
    const int bit = std::countr_zero(free);
    if (free_discard_.compare_exchange_weak(free, free & ~(1u << bit), std::memory_order_acquire)) {
      return discard_memory_ + static_cast<size_t>(bit) * kDiscardBytes;
    }
  }
  if (may_refuse_) {
    *bytes = 0;
    return nullptr;
  }
  return discard_memory_ + kDiscardBuffers * kDiscardBytes;
}

bool BufferPool::TakeRunningLow() {
  return running_low_.load(std::memory_order_relaxed) &&
         running_low_.exchange(false, std::memory_order_relaxed);
}

BufferPool::Buffer* BufferPool::Find(const uint8_t* data) {
  if (data >= memory_ && data < discard_memory_) {
    return &buffers_[static_cast<size_t>(data - memory_) / kBufferBytes];
  }
  const size_t index = static_cast<size_t>(data - discard_memory_) / kDiscardBytes;
  return data >= discard_memory_ && index < kDiscardBuffers ? &buffers_[count_ + index] : nullptr;
}

void BufferPool::Complete(uint8_t* data, size_t valid_bytes, void* context) {
  if (Buffer* const buffer = Find(data)) {
    Queue(*buffer, valid_bytes, context);
  } else {
    shared_completed_.fetch_add(1, std::memory_order_relaxed);
  }
  // The other order than in AwaitReturn: one of the two sees the other.
  if (lent_.fetch_sub(1) == 1 && is_awaited_.load()) Wake();
}

bool BufferPool::AwaitReturn(uint64_t deadline_ns) {
  is_awaited_.store(true);
  for (;;) {
    const uint32_t seen = wake_.load(std::memory_order_acquire);
    const uint64_t now = NowNs();
    const bool all_came = lent_.load() == 0;
    if (all_came || now >= deadline_ns) {
      is_awaited_.store(false);
      return all_came;
    }
    FutexWait(wake_, seen, deadline_ns - now);
  }
}

void BufferPool::Queue(Buffer& buffer, size_t valid_bytes, void* context) {
  buffer.valid_bytes = valid_bytes;
  buffer.context = context;
  buffer.next = completed_.load(std::memory_order_relaxed);
  while (!completed_.compare_exchange_weak(buffer.next, &buffer, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
  // The thread that counts the last of a batch wakes the drain, and the next one does so again
  // after TakeCompleted.
  const uint32_t waiting = 1 + waiting_.fetch_add(1, std::memory_order_relaxed);
  if (waiting == batch_ || buffer.discard) Wake();
}

uint32_t BufferPool::TakeSharedCompleted() {
  return shared_completed_.exchange(0, std::memory_order_relaxed);
}

BufferPool::Buffer* BufferPool::TakeCompleted() {
  waiting_.store(0, std::memory_order_relaxed);
  Buffer* newest = completed_.exchange(nullptr, std::memory_order_acquire);
  Buffer* oldest = nullptr;
  while (newest != nullptr) {
    Buffer* next = newest->next;
    newest->next = oldest;
    oldest = newest;
    newest = next;
  }
  return oldest;
}

void BufferPool::WaitForCompleted(uint64_t timeout_ns) {
  const uint32_t seen = wake_.load(std::memory_order_acquire);
  if (waiting_.load(std::memory_order_relaxed) >= batch_) return;
  FutexWait(wake_, seen, timeout_ns);
}

void BufferPool::AwaitWake(uint64_t timeout_ns) {
  if (waiting_.load(std::memory_order_relaxed) < batch_) FutexWait(wake_, seen_, timeout_ns);
  seen_ = wake_.load(std::memory_order_acquire);
}

void BufferPool::Wake() {
  wake_.fetch_add(1, std::memory_order_release);
  FutexWake(wake_);
}

void BufferPool::Recycle(Buffer& buffer) {
  // CUPTI asks for zeros (ZEROED_OUT_ACTIVITY_BUFFER): else it clears the buffers on the program's
  // threads.
  std::memset(buffer.data, 0, buffer.valid_bytes);
  if (buffer.discard) {
    free_discard_.fetch_or(1u << (buffer.index - count_), std::memory_order_release);
    return;
  }
  const uint64_t slots = (uint64_t{1} << buffer.slots) - 1;
  free_count_.fetch_add(buffer.slots, std::memory_order_relaxed);
  buffer.slots = 1;
  free_[buffer.index / 64].fetch_or(slots << (buffer.index % 64), std::memory_order_release);
}

}  // namespace ranktap::agent::cupti

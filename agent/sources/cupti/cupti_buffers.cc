// The pool.
// Runs on: see cupti_buffers.h.  May not: allocate after Create.
#include "agent/sources/cupti/cupti_buffers.h"

#include <sys/mman.h>

#include <bit>
#include <cstring>
#include <new>

#include "agent/core/futex.h"

namespace ranktap::agent::cupti {

bool BufferPool::Create(size_t total_bytes, bool may_refuse) {
  may_refuse_ = may_refuse;
  count_ = static_cast<uint32_t>(total_bytes / kBufferBytes);
  if (count_ > kMaxBuffers) count_ = kMaxBuffers;
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

uint8_t* BufferPool::TakeFree(size_t* bytes) {
  for (uint32_t word = 0; word <= (count_ - 1) / 64; ++word) {
    uint64_t free = free_[word].load(std::memory_order_relaxed);
    while (free != 0) {
      const int bit = std::countr_zero(free);
      if (free_[word].compare_exchange_weak(free, free & ~(uint64_t{1} << bit),
                                            std::memory_order_acquire)) {
        *bytes = kBufferBytes;
        if (free_count_.fetch_sub(1, std::memory_order_relaxed) == count_ / 4 + 1 &&
            !running_low_.exchange(true, std::memory_order_relaxed)) {
          Wake();
        }
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
  Buffer* buffer = Find(data);
  if (buffer == nullptr) {
    shared_completed_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  buffer->valid_bytes = valid_bytes;
  buffer->context = context;
  buffer->next = completed_.load(std::memory_order_relaxed);
  while (!completed_.compare_exchange_weak(buffer->next, buffer, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
  Wake();
}

uint32_t BufferPool::TakeSharedCompleted() {
  return shared_completed_.exchange(0, std::memory_order_relaxed);
}

BufferPool::Buffer* BufferPool::TakeCompleted() {
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
  if (completed_.load(std::memory_order_relaxed) != nullptr) return;
  FutexWait(wake_, seen, timeout_ns);
}

void BufferPool::Wake() {
  wake_.fetch_add(1, std::memory_order_release);
  FutexWake(wake_);
}

void BufferPool::Recycle(Buffer& buffer) {
  // What CUPTI asks for (ZEROED_OUT_ACTIVITY_BUFFER): else it clears them on the program's threads.
  std::memset(buffer.data, 0, buffer.valid_bytes);
  if (buffer.discard) {
    free_discard_.fetch_or(1u << (buffer.index - count_), std::memory_order_release);
    return;
  }
  free_count_.fetch_add(1, std::memory_order_relaxed);
  free_[buffer.index / 64].fetch_or(uint64_t{1} << (buffer.index % 64), std::memory_order_release);
}

}  // namespace ranktap::agent::cupti

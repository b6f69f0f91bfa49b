// The memory that CUPTI writes its records into: a fixed pool, zeroed and touched beforehand, since
// buffers are requested on the program's threads.
// Runs on: TakeFree on user threads, Complete on CUPTI's or a user thread, the rest on the drain
// thread.  May not: in the first two allocate, lock, log.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ranktap::agent::cupti {

class BufferPool {
 public:
  // Small, because CUPTI 13 keeps one for each thread: 24 MiB serve 96 threads at once.
  static constexpr size_t kBufferBytes = 256u << 10;

  struct Buffer {
    uint8_t* data = nullptr;
    size_t valid_bytes = 0;
    void* context = nullptr;
    bool discard = false;  // its records are lost: count them
    uint32_t index = 0;
    uint32_t slots = 1;  // of kBufferBytes
    Buffer* next = nullptr;
  };

  // Maps `total_bytes` of buffers and the discard buffers. `may_refuse`: this CUPTI takes nullptr
  // for "no buffer" and counts what it drops (from 12.9 on; before, it crashes). False: no memory.
  [[nodiscard]] bool Create(size_t total_bytes, bool may_refuse);
  bool created() const { return buffers_ != nullptr; }
  // Whether TakeFree gave it, at some time.
  bool Owns(const uint8_t* data) const {
    return data >= memory_ && data < reinterpret_cast<const uint8_t*>(buffers_);
  }

  // A zeroed buffer. When the pool is empty, one whose content will be counted and thrown away;
  // when those are gone too, nullptr or, where CUPTI does not take that, one that all share.
  // `large`: 1 MiB, if there is one, for a thread that takes the records of many.
  uint8_t* TakeFree(size_t* bytes, bool large = false);

  // True once after the pool has run low: most of it lies with CUPTI, half empty perhaps, and
  // should be asked for.
  bool TakeRunningLow();

  // Fewer completed buffers are not worth a wake, which is a system call on the thread that
  // completes them; they wait for the next flush. In a small pool a quarter of it.
  static constexpr uint32_t kMostInABatch = 8;

  // CUPTI is done with the buffer. The last of a batch wakes whoever waits in WaitForCompleted, and
  // one for discarding does so at once: there are few.
  void Complete(uint8_t* data, size_t valid_bytes, void* context);

  // Waits until CUPTI has handed back every buffer, or `deadline_ns` (CLOCK_MONOTONIC): a flush may
  // return before they come. False: some are there still, or it keeps one that holds nothing.
  bool AwaitReturn(uint64_t deadline_ns);

  // How often the shared buffer came back since the last call. Several threads write to it at once,
  // so what it holds cannot be counted.
  uint32_t TakeSharedCompleted();

  // All completed buffers, oldest first, or nullptr.
  Buffer* TakeCompleted();
  // Waits until a batch of buffers is complete, Wake is called, or `timeout_ns` has passed.
  void WaitForCompleted(uint64_t timeout_ns);
  // The same, but one that came since the last AwaitWake counts: whoever has just looked round is
  // not asleep yet.
  void AwaitWake(uint64_t timeout_ns);
  void Wake();

  // Zeroes what was written and gives the buffer back.
  void Recycle(Buffer& buffer);

 private:
  static constexpr uint32_t kMaxBuffers = 1024;
  static constexpr uint32_t kDiscardBuffers = 4;
  static constexpr size_t kDiscardBytes = 64u << 10;

  static constexpr uint32_t kSlotsOfLarge = 4;
  void CountTaken(uint32_t slots);
  uint8_t* Take(size_t* bytes, bool large);
  uint8_t* TakeLarge(size_t* bytes);
  Buffer* Find(const uint8_t* data);
  void Queue(Buffer& buffer, size_t valid_bytes, void* context);

  uint8_t* memory_ = nullptr;
  uint8_t* discard_memory_ = nullptr;  // kDiscardBuffers of their own, then the shared one
  Buffer* buffers_ = nullptr;          // pool, discard, shared
  uint32_t count_ = 0;
  uint32_t batch_ = 1;
  std::atomic<uint64_t> free_[kMaxBuffers / 64]{};
  std::atomic<uint32_t> free_discard_{0};
  std::atomic<Buffer*> completed_{nullptr};
  std::atomic<uint32_t> shared_completed_{0};
  std::atomic<uint32_t> waiting_{0};  // completed since TakeCompleted, about
  std::atomic<uint32_t> wake_{0};
  uint32_t seen_ = 0;  // of wake_, by AwaitWake
  std::atomic<uint32_t> free_count_{0};
  std::atomic<uint32_t> lent_{0};  // with CUPTI: taken, not completed
  std::atomic<bool> is_awaited_{false};
  std::atomic<bool> running_low_{false};
  bool may_refuse_ = false;
};

}  // namespace ranktap::agent::cupti

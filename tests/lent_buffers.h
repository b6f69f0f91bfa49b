// The buffers of a client that lie with CUPTI: they may come a moment after a flush has returned.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace ranktap {

class LentBuffers {
 public:
  void Lend() {
    const std::lock_guard lock(mutex_);
    ++lent_;
  }
  void TakeBack() {
    const std::lock_guard lock(mutex_);
    if (--lent_ == 0) none_.notify_all();
  }
  // After a flush; CUPTI may keep one that holds no record.
  void AwaitAll() {
    constexpr std::chrono::milliseconds kPatience{2'000};
    std::unique_lock lock(mutex_);
    none_.wait_for(lock, kPatience, [this] { return lent_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable none_;
  int lent_ = 0;
};

}  // namespace ranktap

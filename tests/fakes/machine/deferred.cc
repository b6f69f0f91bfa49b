#include "tests/fakes/machine/deferred.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "tests/fakes/machine/clock.h"

namespace ranktap::standin {
namespace {

class DeferredQueue {
 public:
  static DeferredQueue& Get() {
    static DeferredQueue* queue = new DeferredQueue;
    return *queue;
  }

  void Add(uint64_t device_ns, std::function<void()> effect) {
    std::lock_guard lock(mutex_);
    if (!started_) Start();
    waiting_.emplace(device_ns, std::move(effect));
    changed_.notify_all();
  }

  bool any() {
    std::lock_guard lock(mutex_);
    return !waiting_.empty() || running_;
  }

  void WaitUntilRun(uint64_t device_ns) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      if (running_ && running_ns_ <= device_ns) return false;
      return waiting_.empty() || waiting_.begin()->first > device_ns;
    });
  }

 private:
  void Start() {
    started_ = true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { Run(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void Run() {
    pthread_setname_np(pthread_self(), "standin-host-fn");
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !waiting_.empty(); });
      uint64_t due = waiting_.begin()->first;
      lock.unlock();
      WaitUntilDevice(due);
      lock.lock();
      // Equal keys keep their order of insertion: the first is the oldest.
      auto first = waiting_.extract(waiting_.begin());
      running_ = true;
      running_ns_ = first.key();
      lock.unlock();
      first.mapped()();
      lock.lock();
      running_ = false;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::multimap<uint64_t, std::function<void()>> waiting_;
  bool running_ = false;
  uint64_t running_ns_ = 0;
  bool started_ = false;
};

}  // namespace

void Defer(uint64_t device_ns, std::function<void()> effect) {
  DeferredQueue::Get().Add(device_ns, std::move(effect));
}

bool AnyDeferred() { return DeferredQueue::Get().any(); }

void WaitForDeferred(uint64_t device_ns) { DeferredQueue::Get().WaitUntilRun(device_ns); }

}  // namespace ranktap::standin

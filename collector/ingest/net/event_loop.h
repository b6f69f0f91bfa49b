// Waits for descriptors, timers and tasks, and calls what was registered for them. It knows nothing
// of who registers. One thread calls RunOnce, and everything registered runs on that thread; only
// Post may be called from others.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/ingest/monotonic_clock.h"

namespace ranktap::collector {

class EventLoop {
 public:
  using Task = std::function<void()>;
  using OnReady = std::function<void(uint32_t events)>;  // epoll's bits
  using Clock = std::function<uint64_t()>;               // ns
  // Names a watched descriptor; never given twice. 0: none.
  using Tag = uint64_t;

  explicit EventLoop(Clock clock = MonotonicRawNs);

  // Calls `on_ready` while the descriptor has any of `events` (level-triggered). The descriptor has
  // to stay open until Unwatch. 0: the kernel refused, errno says why.
  Tag Watch(int fd, uint32_t events, OnReady on_ready);
  // False: the kernel refused, errno says why.
  bool Rewatch(Tag tag, uint32_t events);
  // Nothing more is delivered, not even what the kernel has already reported. `on_ready` may call
  // it on itself. A tag that is not known any more is left alone.
  void Unwatch(Tag tag);

  // Runs `task` in `delay_ns` or later. Timers run in the order of their instants, then of the
  // calls. They cannot be taken back: a task looks whether it is still wanted.
  void After(uint64_t delay_ns, Task task);

  // Thread-safe. Tasks run in the order of the calls, after the descriptors' events of a turn.
  void Post(Task task);

  // Keeps an object that callers up the stack may still use, until the running call has returned.
  void Release(std::shared_ptr<void> object) { released_.push_back(std::move(object)); }

  // While `is_paused` says so, no descriptor is looked at. It is asked before each event, so that
  // one turn cannot bring more than one event too much.
  void PauseWhile(std::function<bool()> is_paused) { is_paused_ = std::move(is_paused); }

  // One turn: waits for at most `longest_ms` (negative: as long as it takes), then runs what is
  // due. True: the descriptors were asked and had nothing.
  bool RunOnce(int longest_ms);

 private:
  struct Watched {
    int fd;
    OnReady on_ready;
  };
  int DeliverEvents(int timeout_ms);
  void Call(const Task& task);
  void RunTasks();
  void RunTimers();
  int TimeoutMs(int longest_ms) const;

  Clock clock_;
  FileDescriptor epoll_, wake_;
  std::function<bool()> is_paused_ = [] { return false; };
  std::unordered_map<Tag, std::shared_ptr<Watched>> watched_;
  Tag last_tag_ = 0;
  std::multimap<uint64_t, Task> timers_;  // by instant
  std::vector<std::shared_ptr<void>> released_;

  std::mutex mutex_;
  std::vector<Task> tasks_;
};

}  // namespace ranktap::collector

#include "collector/ingest/net/event_loop.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

namespace ranktap::collector {
namespace {

constexpr EventLoop::Tag kWakeTag = 0;
constexpr int kMaxEvents = 64;
constexpr int kLongestWaitMs = 60'000;

bool Control(int epoll, int operation, int fd, EventLoop::Tag tag, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  return ::epoll_ctl(epoll, operation, fd, &event) == 0;
}

}  // namespace

EventLoop::EventLoop(Clock clock)
    : clock_(std::move(clock)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  (void)Control(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), kWakeTag, EPOLLIN);
}

EventLoop::Tag EventLoop::Watch(int fd, uint32_t events, OnReady on_ready) {
  const Tag tag = ++last_tag_;
  if (!Control(epoll_.get(), EPOLL_CTL_ADD, fd, tag, events)) return 0;
  watched_.emplace(tag, std::make_shared<Watched>(Watched{fd, std::move(on_ready)}));
  return tag;
}

bool EventLoop::Rewatch(Tag tag, uint32_t events) {
  const auto found = watched_.find(tag);
  if (found == watched_.end()) return true;
  return Control(epoll_.get(), EPOLL_CTL_MOD, found->second->fd, tag, events);
}

void EventLoop::Unwatch(Tag tag) {
  const auto found = watched_.find(tag);
  if (found == watched_.end()) return;
  (void)::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second->fd, nullptr);
  watched_.erase(found);
}

void EventLoop::After(uint64_t delay_ns, Task task) {
  timers_.emplace(clock_() + delay_ns, std::move(task));
}

void EventLoop::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof(one));
}

bool EventLoop::RunOnce(int longest_ms) {
  const int timeout_ms = TimeoutMs(longest_ms);
  bool is_quiet = false;
  if (is_paused_()) {
    pollfd poller{.fd = wake_.get(), .events = POLLIN, .revents = 0};
    (void)::poll(&poller, 1, timeout_ms);
  } else {
    is_quiet = DeliverEvents(timeout_ms) == 0;
  }
  RunTasks();
  RunTimers();
  return is_quiet;
}

int EventLoop::DeliverEvents(int timeout_ms) {
  epoll_event events[kMaxEvents];
  const int count = ::epoll_wait(epoll_.get(), events, kMaxEvents, timeout_ms);
  for (int i = 0; i < count; ++i) {
    if (is_paused_()) break;                  // the kernel reports the others again
    const uint64_t tag = events[i].data.u64;  // epoll_event is packed: no reference into it
    const auto found = watched_.find(tag);
    if (found == watched_.end()) continue;  // the wake-up, or unwatched since it was reported
    const std::shared_ptr<Watched> watched = found->second;
    Call([&] { watched->on_ready(events[i].events); });
  }
  return count;
}

void EventLoop::Call(const Task& task) {
  try {
    task();
  } catch (const std::bad_alloc&) {
    // One peer's doing, whose connection ends or waits; everybody else's is still to be done.
  }
  // A destructor may release more; that waits for the next call.
  const auto released = std::exchange(released_, {});
}

void EventLoop::RunTasks() {
  uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof(count));
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const Task& task : tasks) Call(task);
}

void EventLoop::RunTimers() {
  while (!timers_.empty() && timers_.begin()->first <= clock_()) {
    const auto timer = timers_.extract(timers_.begin());
    Call(timer.mapped());
  }
}

int EventLoop::TimeoutMs(int longest_ms) const {
  if (timers_.empty()) return longest_ms;
  const uint64_t now = clock_();
  const uint64_t at = timers_.begin()->first;
  if (at <= now) return 0;
  const uint64_t longest = static_cast<uint64_t>(longest_ms < 0 ? kLongestWaitMs : longest_ms);
  return static_cast<int>(std::min((at - now) / 1'000'000 + 1, longest));
}

}  // namespace ranktap::collector

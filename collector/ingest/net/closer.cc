#include "collector/ingest/net/closer.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

namespace ranktap::collector {
namespace {

constexpr auto kEnd = std::chrono::milliseconds(200);

// Interrupts the calling thread ten times a second: a socket that lingers, inside of another one
// too, waits no longer than that.
class Nudge {
 public:
  Nudge() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    (void)::sigaction(Signal(), &action, nullptr);
    sigset_t signals;
    ::sigemptyset(&signals);
    ::sigaddset(&signals, Signal());
    (void)::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = Signal();
    event._sigev_un._tid = ::gettid();
    works_ = ::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
    const timespec tenth{0, 100'000'000};
    const itimerspec times{tenth, tenth};
    if (works_) (void)::timer_settime(timer_, 0, &times, nullptr);
  }
  ~Nudge() {
    if (works_) (void)::timer_delete(timer_);
  }
  Nudge(const Nudge&) = delete;
  Nudge& operator=(const Nudge&) = delete;

 private:
  static int Signal() { return SIGRTMAX - 3; }
  timer_t timer_{};
  bool works_ = false;
};

}  // namespace

struct Closer::State {
  struct Queue {
    std::deque<FileDescriptor> descriptors;
    bool has_thread = false;
    bool is_closing = false;
  };
  std::mutex mutex;
  std::condition_variable idle;
  std::map<uid_t, Queue> queues;  // of users with something left to close
};

Closer::Closer() : state_(std::make_shared<State>()) {}

Closer::~Closer() {
  std::unique_lock lock(state_->mutex);
  (void)state_->idle.wait_for(lock, kEnd, [this] { return state_->queues.empty(); });
}

void Closer::Close(uid_t user, FileDescriptor descriptor) {
  if (!descriptor.valid()) return;
  const std::lock_guard lock(state_->mutex);
  State::Queue& queue = state_->queues[user];
  queue.descriptors.push_back(std::move(descriptor));
  if (queue.has_thread) return;
  try {
    std::thread([state = state_, user] { Work(state, user); }).detach();
    queue.has_thread = true;
  } catch (const std::system_error&) {
    // No thread to be had; the next one to be closed tries again.
  }
}

size_t Closer::waiting(uid_t user) const {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->queues.find(user);
  if (found == state_->queues.end()) return 0;
  return found->second.descriptors.size() + (found->second.is_closing ? 1 : 0);
}

// It outlives the closer where a close takes that long.
void Closer::Work(const std::shared_ptr<State>& state, uid_t user) {
  (void)::pthread_setname_np(::pthread_self(), "ranktap-closer");
  const Nudge nudge;
  std::unique_lock lock(state->mutex);
  for (;;) {
    State::Queue& queue = state->queues[user];
    if (queue.descriptors.empty()) break;
    FileDescriptor descriptor = std::move(queue.descriptors.front());
    queue.descriptors.pop_front();
    queue.is_closing = true;
    lock.unlock();
    // Not by the caller: a peer may hold the socket's lock for as long as it likes.
    const linger none{};
    (void)::setsockopt(descriptor.get(), SOL_SOCKET, SO_LINGER, &none, sizeof(none));
    descriptor.Reset();
    lock.lock();
    state->queues[user].is_closing = false;
  }
  state->queues.erase(user);
  state->idle.notify_all();
}

}  // namespace ranktap::collector

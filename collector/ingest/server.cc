// The loop, its timers and its tasks; server_sessions.cc has what happens to a session.
#include "collector/ingest/server.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collector/ingest/handshake.h"
#include "collector/ingest/monotonic_clock.h"

namespace ranktap::collector {
namespace {

// epoll's user word: what the descriptor is, and of whom.
constexpr uint64_t kTagShift = 60;
constexpr uint64_t kListenerTag = 1, kWakeTag = 2, kConnectionTag = 3, kPidfdTag = 4;
constexpr uint64_t kIdMask = (uint64_t{1} << kTagShift) - 1;
constexpr uint64_t Tag(uint64_t kind, uint64_t id) { return kind << kTagShift | id; }

constexpr size_t kScratchBytes = 256u << 10;
// Of one connection before the next one has its turn.
constexpr size_t kReadBudget = 1u << 20;
constexpr int kMaxEvents = 64;
constexpr int kLongestWaitMs = 60'000;
// While stopping: how long the sockets must have been quiet.
constexpr int kStoppingRoundMs = 10;
// Out of descriptors or memory: accepting pauses, or the loop would spin.
constexpr uint64_t kAcceptPauseNs = 100'000'000;

}  // namespace

Server::Server(FileDescriptor listener, ServerOptions options)
    : options_(std::move(options)),
      log_(options_.log_path),
      listener_(std::move(listener)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      plans_(options_.level, options_.start_level),
      scratch_(kScratchBytes) {
  Watch(listener_.get(), Tag(kListenerTag, 0), EPOLLIN, EPOLL_CTL_ADD);
  Watch(wake_.get(), Tag(kWakeTag, 0), EPOLLIN, EPOLL_CTL_ADD);
}

Server::~Server() = default;

void Server::Watch(int fd, uint64_t tag, uint32_t events, int operation) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll_.get(), operation, fd, &event) != 0) {
    log_.Count("epoll_ctl failed", std::strerror(errno));
  }
}

void Server::WatchPidfd(const Session& session) {
  if (session.pidfd() < 0) return;
  Watch(session.pidfd(), Tag(kPidfdTag, session.id()), EPOLLIN, EPOLL_CTL_ADD);
}

void Server::Run(TraceStore* store) {
  store_ = store;
  std::vector<epoll_event> events(kMaxEvents);
  while (!abandoned_ || !sessions_.empty()) {
    if (store_->queued_bytes() > options_.limits.queued_bytes) {
      // The disk is behind: leave the bytes in the sockets, and the senders' rings will hold them.
      pollfd poller{.fd = wake_.get(), .events = POLLIN, .revents = 0};
      (void)::poll(&poller, 1, TimeoutMs());
      RunTasks();
      FireTimers();
      continue;
    }
    const int count = ::epoll_wait(epoll_.get(), events.data(), kMaxEvents, TimeoutMs());
    for (int i = 0; i < count; ++i) {
      // Each may bring kReadBudget. What is left out here is reported again.
      if (store_->queued_bytes() > options_.limits.queued_bytes) break;
      OnEvent(events[i].data.u64, events[i].events);
      closed_connections_.clear();
    }
    RunTasks();
    FireTimers();
    closed_connections_.clear();
    // Nothing more in any socket, or on its way to be accepted.
    if (stopping_ && !abandoned_ && count == 0 && AllAtRest()) AbandonAll();
  }
}

void Server::OnEvent(uint64_t tag, uint32_t events) {
  if (abandoned_) return;  // only the store's replies count now, which come as tasks
  const uint64_t id = tag & kIdMask;
  switch (tag >> kTagShift) {
    case kListenerTag:
      return OnAccept();
    case kConnectionTag:
      return OnConnection(id, events);
    case kPidfdTag:
      return OnPidfd(id);
    default:
      return;  // the tasks, after all events
  }
}

void Server::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof(one));
}

void Server::RunTasks() {
  uint64_t count = 0;
  (void)!::read(wake_.get(), &count, sizeof(count));
  std::vector<Task> tasks;
  {
    const std::lock_guard lock(mutex_);
    tasks.swap(tasks_);
  }
  for (const Task& task : tasks) task();
}

void Server::OnStoreReply(StoreReply reply) {
  auto shared = std::make_shared<StoreReply>(std::move(reply));
  Post([this, shared] {
    if (auto* const stored = std::get_if<StoredReply>(shared.get())) OnStored(std::move(*stored));
    if (auto* const opened = std::get_if<OpenedReply>(shared.get())) OnOpened(*opened);
    if (auto* const positions = std::get_if<PositionsReply>(shared.get())) OnPositions(*positions);
    if (auto* const refused = std::get_if<RefusedReply>(shared.get())) OnRefused(*refused);
    if (auto* const closed = std::get_if<ClosedReply>(shared.get())) OnClosed(*closed);
  });
}

void Server::SetLevel(v1::LevelChange change) {
  Post([this, change] {
    Order(
        change, [](const Session&) { return true; }, "");
  });
}

void Server::Stop(uint64_t grace_ns) {
  Post([this, grace_ns] {
    stopping_ = true;
    AddTimer(TimerKind::kStop, 0, grace_ns);
  });
}

int Server::TimeoutMs() const {
  const int longest = stopping_ ? kStoppingRoundMs : -1;
  if (timers_.empty()) return longest;
  const uint64_t now = MonotonicRawNs();
  if (timers_.top().at_ns <= now) return 0;
  const uint64_t ms = (timers_.top().at_ns - now) / 1'000'000 + 1;
  return static_cast<int>(std::min<uint64_t>(ms, longest < 0 ? kLongestWaitMs : longest));
}

void Server::AddTimer(TimerKind kind, uint64_t id, uint64_t delay_ns, uint64_t number) {
  timers_.push({MonotonicRawNs() + delay_ns, kind, id, number});
}

void Server::FireTimers() {
  while (!timers_.empty() && timers_.top().at_ns <= MonotonicRawNs()) {
    const Timer timer = timers_.top();
    timers_.pop();
    Fire(timer);
  }
}

void Server::Fire(const Timer& timer) {
  Session* const session = FindSession(timer.id);
  switch (timer.kind) {
    case TimerKind::kHello:
      if (const Connection* const connection = FindConnection(timer.id);
          connection != nullptr && connection->session == 0) {
        log_.Count("no hello in time", "pid " + std::to_string(connection->peer().pid));
        CloseConnection(timer.id);
      }
      return;
    case TimerKind::kBlock:
      if (session != nullptr && session->has_open_block() &&
          session->block_number() == timer.number) {
        CloseBlock(session);
      }
      return;
    case TimerKind::kReconnect:
      if (session != nullptr && session->connection() == 0 && session->detached_at != 0) {
        session->is_dead = true;
        EndSession(session, v1::Ending::HOW_DIED);
      }
      return;
    case TimerKind::kEnd:
      if (session != nullptr) TryEnd(session, timer.number);
      return;
    case TimerKind::kAccept:
      Watch(listener_.get(), Tag(kListenerTag, 0), EPOLLIN, EPOLL_CTL_MOD);
      return;
    case TimerKind::kStop:
      if (!abandoned_) AbandonAll();
      return;
  }
}

void Server::OnAccept() {
  for (;;) {
    FileDescriptor socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) {
        log_.Count("accept failed", std::strerror(errno));
        Watch(listener_.get(), Tag(kListenerTag, 0), 0, EPOLL_CTL_MOD);
        AddTimer(TimerKind::kAccept, 0, kAcceptPauseNs);
      }
      return;
    }
    const auto peer = CredentialsOf(socket.get());
    if (peer && IsServed(*peer)) Admit(std::move(socket), *peer);
  }
}

void Server::Admit(FileDescriptor socket, const PeerCredentials& peer) {
  const uint64_t id = next_id_++;
  Watch(socket.get(), Tag(kConnectionTag, id), EPOLLIN, EPOLL_CTL_ADD);
  connections_.emplace(id, std::make_unique<Connection>(std::move(socket), id, peer));
  AddTimer(TimerKind::kHello, id, options_.limits.hello_timeout_ns);
}

FileDescriptor Server::ConnectSpool(uid_t owner) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  auto ours = std::make_shared<FileDescriptor>(ends[0]);
  Post(
      [this, ours, owner] { Admit(std::move(*ours), {.uid = owner, .pid = 0, .is_spool = true}); });
  return FileDescriptor(ends[1]);
}

bool Server::IsServed(const PeerCredentials& peer) {
  if (!options_.all_users && peer.uid != options_.owner && peer.uid != 0) {
    log_.Count("another user's process", "uid " + std::to_string(peer.uid));
    return false;
  }
  const auto of_user =
      std::count_if(connections_.begin(), connections_.end(),
                    [&](const auto& entry) { return entry.second->peer().uid == peer.uid; });
  if (connections_.size() >= options_.limits.connections ||
      static_cast<size_t>(of_user) >= options_.limits.connections_per_user) {
    log_.Count("too many connections", "uid " + std::to_string(peer.uid));
    return false;
  }
  return true;
}

void Server::OnConnection(uint64_t id, uint32_t events) {
  Connection* const connection = FindConnection(id);
  if (connection == nullptr) return;
  if ((events & EPOLLOUT) != 0 || connection->closing) {
    FlushOrClose(connection);
    if (FindConnection(id) == nullptr || connection->closing) return;
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) ReadFrom(connection, kReadBudget);
}

void Server::FlushOrClose(Connection* connection) {
  const bool ok = connection->Flush();
  if (!ok || (connection->closing && !connection->wants_to_write())) {
    return CloseConnection(connection->id());
  }
  const uint32_t out = connection->wants_to_write() ? static_cast<uint32_t>(EPOLLOUT) : 0u;
  const uint32_t in = connection->closing ? 0u : static_cast<uint32_t>(EPOLLIN);
  Watch(connection->fd(), Tag(kConnectionTag, connection->id()), in | out, EPOLL_CTL_MOD);
}

Connection* Server::FindConnection(uint64_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

Session* Server::FindSession(SessionId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

}  // namespace ranktap::collector

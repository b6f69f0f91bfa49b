#include "collector/ingest/net/connections.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

namespace ranktap::collector {
namespace {

constexpr size_t kScratchBytes = 256u << 10;
// One connection reads this much before the next one has its turn.
constexpr size_t kReadBudget = 1u << 20;
// The socket bounds the bytes that a dead process can have left in it. A forked child that goes on
// writing has no bound.
constexpr size_t kMaxDrainBytes = 64u << 20;
// Most descriptors of one user that its own doing keeps from being closed; every connection may
// bring 253 more.
constexpr size_t kMostToClose = 512;
// Most that a silent connection may send first while its user is at the bound.
constexpr size_t kFirstFrameBytes = 16u << 10;
// Out of descriptors or memory: accepting pauses, or the loop would spin.
constexpr uint64_t kAcceptPauseNs = 100'000'000;

}  // namespace

Connections::Connections(FileDescriptor listener, const ServerOptions* options, EventLoop* loop,
                         IngestLog* log, Closer* closer, Handlers handlers)
    : options_(options),
      loop_(loop),
      log_(log),
      closer_(closer),
      handlers_(std::move(handlers)),
      listener_(std::move(listener)),
      scratch_(kScratchBytes),
      memory_(options->limits.memory_per_user, [this](uid_t user) { ReadAgain(user); }) {
  listener_tag_ = loop_->Watch(listener_.get(), EPOLLIN, [this](uint32_t) { AcceptAll(); });
  if (listener_tag_ == 0) log_->Count("epoll_ctl failed", std::strerror(errno));
}

void Connections::Rewatch(EventLoop::Tag tag, uint32_t events) {
  if (!loop_->Rewatch(tag, events)) log_->Count("epoll_ctl failed", std::strerror(errno));
}

void Connections::AcceptAll() {
  for (;;) {
    FileDescriptor socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) {
        log_->Count("accept failed", std::strerror(errno));
        Rewatch(listener_tag_, 0);
        loop_->After(kAcceptPauseNs, [this] { Rewatch(listener_tag_, EPOLLIN); });
      }
      return;
    }
    const auto peer = CredentialsOf(socket.get());
    if (peer && IsServed(socket.get(), *peer)) {
      Admit(std::move(socket), *peer);
    } else {
      closer_->Close(peer ? peer->uid : options_->owner, std::move(socket));
    }
  }
}

bool Connections::IsServed(int socket, const PeerCredentials& peer) {
  const bool is_known = options_->all_users || peer.uid == options_->owner || peer.uid == 0;
  if (!is_known &&
      (options_->family_of == 0 || !DescendsFrom(socket, peer.pid, options_->family_of))) {
    log_->Count("another user's process", fmt::format("uid {}", peer.uid));
    return false;
  }
  if (closer_->waiting(peer.uid) > kMostToClose) {
    log_->Count("too many descriptors to close", fmt::format("uid {}", peer.uid));
    return false;
  }
  const auto of_user =
      std::count_if(connections_.begin(), connections_.end(),
                    [&](const auto& entry) { return entry.second->peer().uid == peer.uid; });
  if (connections_.size() >= options_->limits.connections ||
      static_cast<size_t>(of_user) >= options_->limits.connections_per_user) {
    log_->Count("too many connections", fmt::format("uid {}", peer.uid));
    return false;
  }
  return true;
}

void Connections::Admit(FileDescriptor socket, const PeerCredentials& peer) {
  const uint64_t id = ++last_id_;
  auto connection = std::make_shared<Connection>(std::move(socket), id, peer, closer_);
  connection->tag =
      loop_->Watch(connection->fd(), EPOLLIN, [this, id](uint32_t events) { OnReady(id, events); });
  if (connection->tag == 0) log_->Count("epoll_ctl failed", std::strerror(errno));
  connections_.emplace(id, std::move(connection));
  loop_->After(options_->limits.hello_timeout_ns, [this, id] { OnNoHello(id); });
}

void Connections::OnNoHello(uint64_t id) {
  const Connection* const connection = Find(id);
  if (connection == nullptr || connection->session != 0 || connection->is_answered_later) return;
  log_->Count("no hello in time", fmt::format("pid {}", connection->peer().pid));
  Close(id);
}

Connection* Connections::Find(uint64_t id) {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

void Connections::OnReady(uint64_t id, uint32_t events) {
  Connection* const connection = Find(id);
  if (connection == nullptr) return;
  if ((events & EPOLLOUT) != 0 || connection->closing) {
    Flush(connection);
    if (Find(id) == nullptr || connection->closing) return;
  }
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
  if (memory_.IsFull(connection->peer().uid)) return ReadNothing(connection, events);
  Read(connection, kReadBudget);
}

// A first frame of some kilobytes is taken all the same: a hello to be refused, or a question.
void Connections::ReadNothing(Connection* connection, uint32_t events) {
  const uint64_t id = connection->id();
  if (connection->session == 0) {
    Read(connection, kFirstFrameBytes);
    if (Connection* const left = Find(id);
        left != nullptr && left->session == 0 && left->held_bytes() > kFirstFrameBytes) {
      Close(id);
    }
    return;
  }
  log_->Count("not read: the user's memory here is used up",
              fmt::format("uid {}", connection->peer().uid));
  // A peer that is gone would be reported for ever. The process has kept all that was not
  // acknowledged.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return Close(id);
  connection->paused = true;
  Rewatch(connection->tag, WantedEvents(*connection));
}

void Connections::ReadAgain(uid_t user) {
  for (auto& [id, connection] : connections_) {
    if (!connection->paused || connection->peer().uid != user) continue;
    connection->paused = false;
    Rewatch(connection->tag, WantedEvents(*connection));
  }
}

uint32_t Connections::WantedEvents(const Connection& connection) {
  const uint32_t out = connection.wants_to_write() ? static_cast<uint32_t>(EPOLLOUT) : 0u;
  const bool reads = !connection.closing && !connection.paused;
  return (reads ? static_cast<uint32_t>(EPOLLIN) : 0u) | out;
}

void Connections::Read(Connection* connection, size_t budget) {
  bool drained = false;
  const auto take = [&](const proto::FrameView& frame, std::span<const std::byte> bytes) {
    return handlers_.on_frame(connection, frame, bytes);
  };
  Connection::ReadStatus status{};
  try {
    const auto scratch = std::span(scratch_).first(std::min(budget, scratch_.size()));
    status = connection->Read(scratch, budget, take, &drained);
  } catch (const std::bad_alloc&) {
    // Its bytes are given back with it; the others go on.
    log_->Count("out of memory", fmt::format("pid {}", connection->peer().pid));
    return Close(connection->id());
  }
  memory_.Update(connection->peer().uid, connection->held_bytes(), &connection->accounted);
  if (status == Connection::ReadStatus::kOpen) return;
  if (status == Connection::ReadStatus::kBadFrame) {
    log_->Count("bad frame",
                fmt::format("pid {}: {}", connection->peer().pid, connection->problem()));
  }
  Close(connection->id());
}

void Connections::Drain(Connection* connection) { Read(connection, kMaxDrainBytes); }

void Connections::DrainAll() {
  std::vector<uint64_t> ids;
  for (const auto& [id, connection] : connections_) ids.push_back(id);
  for (const uint64_t id : ids) {
    if (Connection* const connection = Find(id)) Drain(connection);
  }
}

void Connections::Flush(Connection* connection) {
  const bool ok = connection->Flush();
  if (!ok || (connection->closing && !connection->wants_to_write())) {
    return Close(connection->id());
  }
  Rewatch(connection->tag, WantedEvents(*connection));
}

void Connections::Close(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const std::shared_ptr<Connection> connection = std::move(found->second);
  connections_.erase(found);
  memory_.Update(connection->peer().uid, 0, &connection->accounted);
  loop_->Unwatch(connection->tag);
  loop_->Release(connection);
  handlers_.on_closed(*connection);
}

bool Connections::all_greeted() const {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& entry) { return entry.second->session != 0; });
}

}  // namespace ranktap::collector

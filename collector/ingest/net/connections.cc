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
      memory_(options->limits.memory_per_user, [this](uid_t user) { ReadAgain(user); }),
      turns_(loop, [this](uint64_t id) { return BeginFrame(id); }) {
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
  const uid_t user = connection->peer().uid;
  if (memory_.IsFull(user)) return ReadNothing(connection, events);
  // A peer that is gone has no more to send than its socket holds, and would be reported for ever.
  const bool is_gone = (events & (EPOLLHUP | EPOLLERR)) != 0;
  if (connection->session != 0 && !connection->has_half_frame() && !connection->has_turn &&
      !is_gone && turns_.MustWait(user)) {
    connection->waits_for_turn = true;
    turns_.Wait(user, id);
    return Rewatch(connection->tag, WantedEvents(*connection));
  }
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
  const bool reads = !connection.closing && !connection.paused && !connection.waits_for_turn;
  return (reads ? static_cast<uint32_t>(EPOLLIN) : 0u) | out;
}

bool Connections::BeginFrame(uint64_t id) {
  Connection* const connection = Find(id);
  if (connection == nullptr || !connection->waits_for_turn) return false;
  connection->waits_for_turn = false;
  connection->has_turn = true;
  Rewatch(connection->tag, WantedEvents(*connection));
  return true;
}

void Connections::AccountHalfFrame(Connection* connection, uint64_t bytes) {
  const uid_t user = connection->peer().uid;
  const uint64_t before = connection->accounted;
  if (bytes == before && !connection->has_turn) return;
  memory_.Update(user, bytes, &connection->accounted);
  turns_.Update(user, bytes, before, std::exchange(connection->has_turn, false));
}

bool Connections::Read(Connection* connection, size_t budget) {
  bool drained = false;
  const auto take = [&](const proto::FrameView& frame, std::span<const std::byte> bytes) {
    return handlers_.on_frame(connection, frame, bytes);
  };
  Connection::ReadStatus status{};
  try {
    const auto scratch = std::span(scratch_).first(std::min(budget, scratch_.size()));
    const bool others_wait = turns_.MustWait(connection->peer().uid);
    status = connection->Read(scratch, budget, others_wait, take, &drained);
  } catch (const std::bad_alloc&) {
    // Its bytes are given back with it; the others go on.
    log_->Count("out of memory", fmt::format("pid {}", connection->peer().pid));
    Close(connection->id());
    return true;
  }
  if (Find(connection->id()) == nullptr) return true;  // a frame's handler has closed it
  AccountHalfFrame(connection, connection->held_bytes());
  if (status == Connection::ReadStatus::kOpen) return drained;
  if (status == Connection::ReadStatus::kBadFrame) {
    log_->Count("bad frame",
                fmt::format("pid {}: {}", connection->peer().pid, connection->problem()));
  }
  Close(connection->id());
  return true;
}

void Connections::Drain(Connection* connection) {
  for (size_t read = 0; read < kMaxDrainBytes; read += kReadBudget) {
    if (Read(connection, kReadBudget)) return;
  }
}

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
  AccountHalfFrame(connection.get(), 0);
  loop_->Unwatch(connection->tag);
  loop_->Release(connection);
  handlers_.on_closed(*connection);
}

bool Connections::all_greeted() const {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& entry) { return entry.second->session != 0; });
}

}  // namespace ranktap::collector

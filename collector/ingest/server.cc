// Connections; server_sessions.cc has what happens to a session.
#include "collector/ingest/server.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collector/ingest/handshake.h"
#include "collector/ingest/monotonic_clock.h"

namespace ranktap::collector {
namespace {

constexpr size_t kScratchBytes = 256u << 10;
// Of one connection before the next one has its turn.
constexpr size_t kReadBudget = 1u << 20;
// While stopping: how long the sockets must have been quiet.
constexpr int kStoppingRoundMs = 10;
// Out of descriptors or memory: accepting pauses, or the loop would spin.
constexpr uint64_t kAcceptPauseNs = 100'000'000;

}  // namespace

Server::Server(FileDescriptor listener, ServerOptions options)
    : options_(std::move(options)),
      log_(options_.log_path),
      listener_(std::move(listener)),
      plans_(options_.level, options_.start_level),
      scratch_(kScratchBytes) {
  listener_tag_ = Watch(listener_.get(), EPOLLIN, [this](uint32_t) { OnAccept(); });
}

Server::~Server() = default;

EventLoop::Tag Server::Watch(int fd, uint32_t events, EventLoop::OnReady on_ready) {
  const EventLoop::Tag tag = loop_.Watch(fd, events, std::move(on_ready));
  if (tag == 0) log_.Count("epoll_ctl failed", std::strerror(errno));
  return tag;
}

void Server::Rewatch(EventLoop::Tag tag, uint32_t events) {
  if (!loop_.Rewatch(tag, events)) log_.Count("epoll_ctl failed", std::strerror(errno));
}

void Server::WatchPidfd(Session* session) {
  if (session->pidfd() < 0) return;
  session->tag =
      Watch(session->pidfd(), EPOLLIN, [this, id = session->id()](uint32_t) { OnPidfd(id); });
}

void Server::Run(TraceStore* store) {
  store_ = store;
  loop_.PauseWhile([this] {
    // Once abandoned, only the store's replies count, which come as tasks. And while the disk is
    // behind the bytes stay in the sockets, and the senders' rings will hold them.
    return abandoned_ || store_->queued_bytes() > options_.limits.queued_bytes;
  });
  while (!abandoned_ || !sessions_.empty()) {
    const bool is_quiet = loop_.RunOnce(stopping_ ? kStoppingRoundMs : -1);
    // Nothing more in any socket, or on its way to be accepted.
    if (stopping_ && !abandoned_ && is_quiet && AllAtRest()) AbandonAll();
  }
}

void Server::OnStoreReply(StoreReply reply) {
  auto shared = std::make_shared<StoreReply>(std::move(reply));
  loop_.Post([this, shared] {
    if (auto* const stored = std::get_if<StoredReply>(shared.get())) OnStored(std::move(*stored));
    if (auto* const opened = std::get_if<OpenedReply>(shared.get())) OnOpened(*opened);
    if (auto* const positions = std::get_if<PositionsReply>(shared.get())) OnPositions(*positions);
    if (auto* const refused = std::get_if<RefusedReply>(shared.get())) OnRefused(*refused);
    if (auto* const closed = std::get_if<ClosedReply>(shared.get())) OnClosed(*closed);
  });
}

void Server::SetLevel(v1::LevelChange change) {
  loop_.Post([this, change] {
    Order(
        change, [](const Session&) { return true; }, "");
  });
}

void Server::Stop(uint64_t grace_ns) {
  loop_.Post([this, grace_ns] {
    stopping_ = true;
    loop_.After(grace_ns, [this] {
      if (!abandoned_) AbandonAll();
    });
  });
}

void Server::OnAccept() {
  for (;;) {
    FileDescriptor socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN) {
        log_.Count("accept failed", std::strerror(errno));
        Rewatch(listener_tag_, 0);
        loop_.After(kAcceptPauseNs, [this] { Rewatch(listener_tag_, EPOLLIN); });
      }
      return;
    }
    const auto peer = CredentialsOf(socket.get());
    if (peer && IsServed(*peer)) Admit(std::move(socket), *peer);
  }
}

void Server::Admit(FileDescriptor socket, const PeerCredentials& peer) {
  const uint64_t id = next_id_++;
  auto connection = std::make_shared<Connection>(std::move(socket), id, peer);
  connection->tag =
      Watch(connection->fd(), EPOLLIN, [this, id](uint32_t events) { OnConnection(id, events); });
  connections_.emplace(id, std::move(connection));
  loop_.After(options_.limits.hello_timeout_ns, [this, id] { OnNoHello(id); });
}

void Server::OnNoHello(uint64_t id) {
  const Connection* const connection = FindConnection(id);
  if (connection == nullptr || connection->session != 0) return;
  log_.Count("no hello in time", "pid " + std::to_string(connection->peer().pid));
  CloseConnection(id);
}

FileDescriptor Server::ConnectSpool(uid_t owner) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  auto ours = std::make_shared<FileDescriptor>(ends[0]);
  loop_.Post(
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
  Rewatch(connection->tag, in | out);
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

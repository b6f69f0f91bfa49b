// What happens to a session: hello, frames, blocks, death, the end. The rest of Server.
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

#include "collector/ingest/handshake.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/ingest/server.h"

namespace ranktap::collector {
namespace {

// What a dead process can have left in a socket is bounded by the socket; a forked child that goes
// on writing is not.
constexpr size_t kMaxDrainBytes = 64u << 20;
// A zombie tells how it died; its parent may take some time to make it one, or to reap it.
constexpr uint64_t kEndRetryNs = 10'000'000;
constexpr uint64_t kEndRetries = 20;
constexpr size_t kSpareBlocks = 4;
constexpr uint64_t kRetryAfterMs = 0;  // never: a refusal does not go away by itself

}  // namespace

void Server::ReadFrom(Connection* connection, size_t budget) {
  bool drained = false;
  const uint64_t id = connection->id();
  const Connection::ReadStatus status = connection->Read(
      scratch_, budget,
      [&](const proto::FrameView& frame, std::span<const std::byte> bytes) {
        return OnFrame(connection, frame, bytes);
      },
      &drained);
  if (status == Connection::ReadStatus::kOpen) return;
  if (status == Connection::ReadStatus::kBadFrame) {
    log_.Count("bad frame",
               "pid " + std::to_string(connection->peer().pid) + ": " + connection->problem());
  }
  CloseConnection(id);
}

bool Server::OnFrame(Connection* connection, const proto::FrameView& frame,
                     std::span<const std::byte> bytes) {
  if (connection->session == 0) {
    return frame.header.type == proto::FrameType::kControl ? OnControl(connection, frame)
                                                           : OnHello(connection, frame);
  }
  Session* const session = FindSession(connection->session);
  if (session == nullptr || session->connection() != connection->id()) return false;
  std::string why;
  const uint64_t before = session->open_bytes();
  const bool was_open = session->has_open_block();
  const auto verdict = session->Accept(frame, bytes, MonotonicRawNs(), options_.limits, &why);
  if (verdict == Session::Verdict::kViolation) {
    log_.Count("frame not acceptable",
               "pid " + std::to_string(connection->peer().pid) + ": " + why);
    return false;
  }
  if (verdict == Session::Verdict::kDuplicate) log_.Count("frames sent twice", "skipped");
  session->is_closed = false;
  if (!was_open) OnBlockOpened(session);
  OnBlockGrew(session, before);
  return true;
}

void Server::OnBlockOpened(Session* session) {
  open_order_.emplace_back(session->id(), session->block_number());
  loop_.After(kBlockAgeNs, [this, id = session->id(), number = session->block_number()] {
    Session* const old = FindSession(id);
    if (old != nullptr && old->has_open_block() && old->block_number() == number) CloseBlock(old);
  });
}

void Server::OnBlockGrew(Session* session, uint64_t before) {
  open_bytes_ += session->open_bytes() - before;
  if (session->block_is_full()) CloseBlock(session);
  while (open_bytes_ > options_.limits.open_block_bytes && !open_order_.empty()) {
    const auto [id, number] = open_order_.front();
    open_order_.pop_front();
    Session* const oldest = FindSession(id);
    if (oldest != nullptr && oldest->has_open_block() && oldest->block_number() == number) {
      CloseBlock(oldest);
    }
  }
  // Most blocks are closed by age; their entries here go when they come to the front.
  while (!open_order_.empty()) {
    const auto [id, number] = open_order_.front();
    const Session* const oldest = FindSession(id);
    if (oldest != nullptr && oldest->has_open_block() && oldest->block_number() == number) break;
    open_order_.pop_front();
  }
}

void Server::CloseBlock(Session* session) {
  if (!session->has_open_block()) return;
  open_bytes_ -= session->open_bytes();
  FrameBlock buffer;
  if (!spare_blocks_.empty()) {
    buffer = std::move(spare_blocks_.back());
    spare_blocks_.pop_back();
  }
  store_->Store(session->id(), session->connection(), session->connection_frames(),
                session->TakeBlock(std::move(buffer)));
}

bool Server::OnHello(Connection* connection, const proto::FrameView& frame) {
  v1::Hello hello;
  if (frame.header.type != proto::FrameType::kHello || !ParseHello(frame.payload, &hello)) {
    return false;
  }
  const std::string refusal = RefusalOf(hello);
  if (!refusal.empty()) {
    Refuse(connection, refusal);
    return true;
  }
  const bool is_known = by_token_.contains({connection->peer().uid, hello.session()});
  Session* const session = FindOrOpenSession(connection, hello);
  if (session == nullptr) {
    Refuse(connection, "too many sessions");
    return true;
  }
  FileDescriptor descriptor = connection->TakeDescriptor();
  if (descriptor.valid()) {
    std::string why;
    auto segment = std::make_shared<Segment>(std::move(descriptor), &why);
    if (segment->valid()) session->segment = std::move(segment);
    if (!why.empty()) log_.Count("rings refused", why);
  }
  connection->session = session->id();
  if (is_known) {
    Reattach(session, connection, frame);
  } else {
    session->Attach(connection->id(), connection->frames());
    // Only the writer thread knows whether an earlier collector has stored anything of it.
    if (options_.resumable) {
      store_->AskPositions(session->id(), connection->id());
    } else {
      Welcome(connection, nullptr);
    }
  }
  return true;
}

Session* Server::FindOrOpenSession(Connection* connection, const v1::Hello& hello) {
  const std::pair key(connection->peer().uid, hello.session());
  const auto known = by_token_.find(key);
  if (known != by_token_.end()) return FindSession(known->second);
  const auto of_user = std::count_if(by_token_.begin(), by_token_.end(), [&](const auto& entry) {
    return entry.first.first == key.first;
  });
  if (sessions_.size() >= options_.limits.sessions ||
      static_cast<size_t>(of_user) >= options_.limits.sessions_per_user) {
    log_.Count("too many sessions", "pid " + std::to_string(connection->peer().pid));
    return nullptr;
  }
  const SessionId id = next_id_++;
  const bool is_spool = connection->peer().is_spool;
  auto session = std::make_unique<Session>(
      id, hello, connection->peer(),
      is_spool ? FileDescriptor() : OpenPidfd(connection->fd(), connection->peer().pid));
  const auto pid = static_cast<uint32_t>(connection->peer().pid);
  store_->Open(id, hello, pid != 0 ? pid : hello.process().pid(), connection->peer());
  by_token_.emplace(key, id);
  WatchPidfd(session.get());
  return sessions_.emplace(id, std::move(session)).first->second.get();
}

// The same process image on a new socket. The welcome waits for what the old one had brought.
void Server::Reattach(Session* session, Connection* connection, const proto::FrameView& hello) {
  CloseBlock(session);
  if (const uint64_t old = session->connection(); old != 0) {
    session->Detach();
    CloseConnection(old);
  }
  session->Attach(connection->id(), connection->frames());
  session->detached_at = 0;
  session->said_goodbye = false;
  // Its hello may say more than the first one did.
  if (hello.payload.size() < kMaxHelloBytes / 8) {
    AddFrame(session, {.type = proto::FrameType::kAmend}, hello.payload);
  }
  store_->AskPositions(session->id(), connection->id());
}

void Server::AddFrame(Session* session, const proto::FrameFields& fields,
                      std::span<const std::byte> payload) {
  const bool was_open = session->has_open_block();
  const uint64_t before = session->open_bytes();
  session->Add(fields, payload, MonotonicRawNs());
  if (!was_open) OnBlockOpened(session);
  OnBlockGrew(session, before);
}

void Server::Refuse(Connection* connection, const std::string& why) {
  log_.Count("refused", "pid " + std::to_string(connection->peer().pid) + ": " + why);
  v1::Welcome welcome;
  welcome.set_refused(why);
  welcome.set_retry_after_ms(kRetryAfterMs);
  welcome.set_collector_version(options_.collector_version);
  (void)connection->Send(EncodeControl(proto::FrameType::kWelcome, welcome.SerializeAsString()));
  connection->closing = true;
  // No more is read from it, so EOF will not be seen either.
  (void)::shutdown(connection->fd(), SHUT_RD);
  FlushOrClose(connection);
}

void Server::Welcome(Connection* connection, const PositionsReply* positions) {
  v1::Welcome welcome;
  welcome.set_protocol(kProtocolMax);
  welcome.set_collector_version(options_.collector_version);
  welcome.set_collector(options_.collector_id);
  Session* const session = FindSession(connection->session);
  const std::string run = session == nullptr ? "" : session->run;
  const uint64_t now = RealtimeNs();
  welcome.set_level(plans_.LevelAt(run, now));
  if (positions != nullptr) {
    for (const auto& [writer, next] : positions->next_events) {
      v1::Position& position = *welcome.add_positions();
      position.set_writer(writer);
      position.set_next_event(next);
    }
  }
  connection->welcomed = true;
  const auto frame = EncodeControl(proto::FrameType::kWelcome, welcome.SerializeAsString());
  if (!connection->Send(frame)) return;  // EPOLLHUP follows
  const v1::LevelChange* const ahead = plans_.Ahead(run, now);
  if (session != nullptr && ahead != nullptr && !Tell(session, connection, *ahead)) return;
  if (connection->wants_to_write()) FlushOrClose(connection);
}

void Server::CloseConnection(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  const SessionId session_id = found->second->session;
  loop_.Unwatch(found->second->tag);
  loop_.Release(std::move(found->second));
  connections_.erase(found);
  Session* const session = FindSession(session_id);
  if (session == nullptr || session->connection() != id) return;
  CloseBlock(session);
  session->Detach();
  session->detached_at = MonotonicRawNs();
  if (session->is_closing) return;
  if (session->said_goodbye) {
    EndSession(session, v1::Ending::HOW_GOODBYE);
  } else if (session->is_dead) {
    TryEnd(session, 0);
  } else if (session->peer().is_spool) {
    session->is_dead = true;
    EndSession(session, v1::Ending::HOW_ABANDONED);
  } else if (session->pidfd() < 0) {
    loop_.After(options_.limits.reconnect_ns, [this, session_id] { OnNoReturn(session_id); });
  }
  // Otherwise the process lives: it may come back, and the pidfd tells when it cannot.
}

void Server::OnPidfd(SessionId id) {
  Session* const session = FindSession(id);
  if (session == nullptr || session->is_dead) return;
  loop_.Unwatch(session->tag);
  session->is_dead = true;
  DrainSocket(session);  // ends the session when the socket is at its end
  if (FindSession(id) != nullptr && !session->is_closing) TryEnd(session, 0);
}

void Server::OnNoReturn(SessionId id) {
  Session* const session = FindSession(id);
  if (session == nullptr || session->connection() != 0 || session->detached_at == 0) return;
  session->is_dead = true;
  EndSession(session, v1::Ending::HOW_DIED);
}

// A forked child may hold the socket open: what the dead process sent is there all the same.
void Server::DrainSocket(Session* session) {
  Connection* const connection = FindConnection(session->connection());
  if (connection == nullptr) return;
  ReadFrom(connection, kMaxDrainBytes);
  CloseConnection(session->connection());
}

void Server::TryEnd(Session* session, uint64_t attempts) {
  if (session->is_closing) return;
  if (!session->said_goodbye && session->pidfd() >= 0) {
    session->end = DescribeEnd(session->pidfd(), session->peer().pid);
    if (session->end.empty() && attempts < kEndRetries) {
      loop_.After(kEndRetryNs, [this, id = session->id(), attempts] {
        if (Session* const again = FindSession(id)) TryEnd(again, attempts + 1);
      });
      return;
    }
  }
  EndSession(session, session->said_goodbye ? v1::Ending::HOW_GOODBYE : v1::Ending::HOW_DIED);
}

void Server::EndSession(Session* session, v1::Ending::How how) {
  if (session->is_closing) return;
  CloseBlock(session);
  session->is_closing = true;
  v1::Ending ending;
  ending.set_how(how);
  ending.set_detail(session->end);
  if (how == v1::Ending::HOW_ABANDONED) {
    ending.set_detail(session->peer().is_spool
                          ? "ended while no collector was there; from its spool"
                          : "the process was still running when the collector stopped");
  }
  const bool leave_rings = how == v1::Ending::HOW_ABANDONED && options_.resumable;
  store_->Close(session->id(), leave_rings ? nullptr : session->segment, session->is_dead,
                std::move(ending));
}

void Server::OnStored(StoredReply reply) {
  if (spare_blocks_.size() < kSpareBlocks) spare_blocks_.push_back(std::move(reply.block));
  Connection* const connection = FindConnection(reply.connection);
  if (connection == nullptr || connection->session != reply.session) return;
  if (!connection->SendAck(reply.frames)) return CloseConnection(reply.connection);
  if (connection->wants_to_write()) FlushOrClose(connection);
}

void Server::OnPositions(const PositionsReply& reply) {
  Connection* const connection = FindConnection(reply.connection);
  if (connection == nullptr || connection->session != reply.session) return;
  if (Session* const session = FindSession(reply.session)) session->Seed(reply.next_events);
  Welcome(connection, &reply);
}

// The disk said no: another process, or this one later, may have better luck.
void Server::OnRefused(const RefusedReply& reply) {
  Session* const session = FindSession(reply.session);
  if (session == nullptr) return;
  const uint64_t connection = session->connection();
  session->Detach();
  if (Connection* const open = FindConnection(connection)) {
    open->session = 0;
    Refuse(open, reply.why);
  }
  Forget(session);
}

void Server::OnClosed(const ClosedReply& reply) {
  Session* const session = FindSession(reply.session);
  if (session == nullptr) return;
  session->is_closing = false;
  session->is_closed = true;
  // A process that lives on may come back with later positions.
  if (session->is_dead || session->pidfd() < 0 || abandoned_) Forget(session);
}

void Server::Forget(Session* session) {
  loop_.Unwatch(session->tag);
  store_->Forget(session->id());
  by_token_.erase({session->peer().uid, session->token()});
  sessions_.erase(session->id());
}

void Server::AbandonAll() {
  OnAccept();
  std::vector<uint64_t> ids;
  for (const auto& [id, connection] : connections_) ids.push_back(id);
  for (const uint64_t id : ids) {
    if (Connection* const connection = FindConnection(id)) ReadFrom(connection, kMaxDrainBytes);
  }
  abandoned_ = true;
  std::vector<SessionId> open;
  for (const auto& [id, session] : sessions_) open.push_back(id);
  for (const SessionId id : open) {
    Session* const session = FindSession(id);
    const bool clean = session->said_goodbye || session->is_closed;
    if (session->is_dead) session->end = DescribeEnd(session->pidfd(), session->peer().pid);
    EndSession(session, clean              ? v1::Ending::HOW_GOODBYE
                        : session->is_dead ? v1::Ending::HOW_DIED
                                           : v1::Ending::HOW_ABANDONED);
  }
}

bool Server::AllAtRest() const {
  const auto knows_session = [](const auto& entry) { return entry.second->session != 0; };
  if (!std::all_of(connections_.begin(), connections_.end(), knows_session)) return false;
  return std::all_of(sessions_.begin(), sessions_.end(), [](const auto& entry) {
    return entry.second->is_closed && entry.second->connection() == 0;
  });
}

}  // namespace ranktap::collector

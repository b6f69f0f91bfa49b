#include "collector/ingest/session/sessions.h"

#include <fmt/core.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "collector/ingest/device_samples.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/ingest/net/handshake.h"
#include "proto/cupti_trial.h"

namespace ranktap::collector {

Sessions::Sessions(const Context& context)
    : in_(context),
      blocks_(in_.options->limits.open_block_bytes, in_.options->limits.small_block_ages, in_.loop,
              in_.store, [this](SessionId id) { return Find(id); }),
      trials_(in_.options->trial_program, in_.loop),
      end_({.options = in_.options,
            .loop = in_.loop,
            .connections = in_.connections,
            .store = in_.store,
            .blocks = &blocks_,
            .find = [this](SessionId id) { return Find(id); }}) {}

Session* Sessions::Find(SessionId id) const {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

bool Sessions::OnHello(Connection* connection, const proto::FrameView& frame) {
  v1::Hello hello;
  if (frame.header.type != proto::FrameType::kHello || !ParseHello(frame.payload, &hello)) {
    return false;
  }
  const std::string refusal = RefusalOf(hello);
  if (!refusal.empty()) {
    Refuse(connection, refusal, 0);
    return true;
  }
  const bool is_known = by_token_.contains({connection->peer().uid, hello.session()});
  // One that is known is turned away, too: unread it would fill its rings, refused its spool.
  if (in_.connections->IsFull(connection->peer().uid)) {
    Refuse(connection, "your processes have used up their share of its memory",
           in_.options->limits.retry_ms);
    return true;
  }
  Session* const session = FindOrOpen(connection, hello);
  if (session == nullptr) {
    Refuse(connection, "too many sessions", in_.options->limits.retry_ms);
    return true;
  }
  // Its process asked while nobody accepted. The spool's connection is not to be closed for it.
  if (session->is_dead && !connection->peer().is_spool) return false;
  FileDescriptor descriptor = connection->TakeDescriptor();
  if (descriptor.valid()) {
    std::string why;
    auto segment =
        std::make_shared<Segment>(std::move(descriptor), &why, in_.closer, connection->peer().uid);
    if (segment->valid()) session->segment = std::move(segment);
    if (!why.empty()) in_.log->Count("rings refused", why);
  }
  connection->session = session->id();
  if (is_known) {
    Reattach(session, connection, frame);
  } else {
    session->Attach(connection->id(), connection->frames());
    // Only the writer thread knows whether an earlier collector has stored anything of it.
    if (in_.options->resumable) {
      in_.store->AskPositions(session->id(), connection->id());
    } else {
      Welcome(connection, nullptr);
    }
  }
  return true;
}

Session* Sessions::FindOrOpen(Connection* connection, const v1::Hello& hello) {
  const std::pair key(connection->peer().uid, hello.session());
  const auto known = by_token_.find(key);
  if (known != by_token_.end()) return Find(known->second);
  const auto of_user = std::count_if(by_token_.begin(), by_token_.end(), [&](const auto& entry) {
    return entry.first.first == key.first;
  });
  if (sessions_.size() >= in_.options->limits.sessions ||
      static_cast<size_t>(of_user) >= in_.options->limits.sessions_per_user) {
    in_.log->Count("too many sessions", fmt::format("pid {}", connection->peer().pid));
    return nullptr;
  }
  const SessionId id = ++last_id_;
  const bool is_spool = connection->peer().is_spool;
  auto session = std::make_unique<Session>(
      id, hello, connection->peer(),
      is_spool ? FileDescriptor() : OpenPidfd(connection->fd(), connection->peer().pid));
  const auto pid = static_cast<uint32_t>(connection->peer().pid);
  in_.store->Open(id, hello, pid != 0 ? pid : hello.process().pid(), connection->peer());
  by_token_.emplace(key, id);
  WatchPidfd(session.get());
  in_.connections->Account(session->peer().uid, session->MemoryBytes(), &session->accounted);
  return sessions_.emplace(id, std::move(session)).first->second.get();
}

void Sessions::WatchPidfd(Session* session) {
  if (session->pidfd() < 0) return;
  session->tag = in_.loop->Watch(session->pidfd(), EPOLLIN,
                                 [this, id = session->id()](uint32_t) { end_.OnProcessEnded(id); });
  if (session->tag == 0) in_.log->Count("epoll_ctl failed", std::strerror(errno));
}

// The same process image on a new socket. The welcome waits for what the old one had brought.
void Sessions::Reattach(Session* session, Connection* connection, const proto::FrameView& hello) {
  blocks_.Close(session);
  if (const uint64_t old = session->connection(); old != 0) {
    session->Detach();
    in_.connections->Close(old);
  }
  session->Attach(connection->id(), connection->frames());
  session->detached_at = 0;
  session->said_goodbye = false;
  // Its hello may say more than the first one did.
  if (hello.payload.size() < kMaxHelloBytes / 8) {
    AddFrame(session, {.type = proto::FrameType::kAmend}, hello.payload);
  }
  in_.store->AskPositions(session->id(), connection->id());
}

void Sessions::Refuse(Connection* connection, const std::string& why, uint32_t retry_ms) {
  in_.log->Count("refused", fmt::format("pid {}: {}", connection->peer().pid, why));
  v1::Welcome welcome;
  welcome.set_refused(why);
  welcome.set_retry_after_ms(retry_ms);
  welcome.set_collector_version(in_.options->collector_version);
  (void)connection->Send(EncodeControl(proto::FrameType::kWelcome, welcome.SerializeAsString()));
  connection->closing = true;
  // No more is read from it, so EOF will not be seen either.
  (void)::shutdown(connection->fd(), SHUT_RD);
  in_.connections->Flush(connection);
}

void Sessions::Welcome(Connection* connection, const PositionsReply* positions) {
  v1::Welcome welcome;
  welcome.set_protocol(kProtocolMax);
  welcome.set_collector_version(in_.options->collector_version);
  welcome.set_collector(in_.options->collector_id);
  welcome.set_takes_spools(in_.options->resumable);
  Session* const session = Find(connection->session);
  const std::string run = session == nullptr ? "" : session->run;
  const uint64_t now = RealtimeNs();
  welcome.set_level(in_.plans->LevelAt(run, now));
  if (positions != nullptr) {
    for (const auto& [writer, next] : positions->next_events) {
      v1::Position& position = *welcome.add_positions();
      position.set_writer(writer);
      position.set_next_event(next);
    }
  }
  connection->welcomed = true;
  const auto frame = EncodeWelcome(welcome, KeptSegments::LengthNs(in_.options->keep));
  if (!connection->Send(frame)) return;  // EPOLLHUP follows
  const v1::LevelChange* const ahead = in_.plans->Ahead(run, now);
  if (session != nullptr && ahead != nullptr && !SendLevel(session, connection, *ahead)) return;
  if (connection->wants_to_write()) in_.connections->Flush(connection);
}

void Sessions::OnConnectionClosed(const Connection& connection) {
  Session* const session = Find(connection.session);
  if (session == nullptr || session->connection() != connection.id()) return;
  flights_.OnConnectionClosed(session->id());
  end_.OnConnectionClosed(session, connection.peer().is_spool);
}

bool Sessions::OnFrame(Connection* connection, const proto::FrameView& frame,
                       std::span<const std::byte> bytes) {
  Session* const session = Find(connection->session);
  if (session == nullptr || session->connection() != connection->id()) return false;
  std::string why;
  const uint64_t number = session->block_number(), bytes_before = session->open_bytes();
  const uint64_t now = MonotonicRawNs();
  const auto verdict = session->Accept(frame, bytes, now, in_.options->limits, &why,
                                       now < watched_until_ns_ ? &live_columns_ : nullptr);
  if (verdict == Session::Verdict::kViolation) {
    in_.log->Count("frame not acceptable", fmt::format("pid {}: {}", connection->peer().pid, why));
    return false;
  }
  if (verdict == Session::Verdict::kDuplicate) in_.log->Count("frames sent twice", "skipped");
  session->is_closed = false;
  blocks_.Grew(session, number, bytes_before);
  if (frame.header.type == proto::FrameType::kFlight) flights_.Take(session->id(), frame.payload);
  if (frame.header.type == proto::FrameType::kCuptiTrial) TryCupti(session, *connection, frame);
  return true;
}

void Sessions::TryCupti(Session* session, const Connection& connection,
                        const proto::FrameView& frame) {
  v1::CuptiTrial trial;
  const int size = static_cast<int>(frame.payload.size());
  if (!trial.ParseFromArray(frame.payload.data(), size)) return;
  constexpr uint32_t kMostTrials = 16;  // one after each reconnect
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (session->peer().is_spool || ++session->trials > kMostTrials ||
      ::getsockopt(connection.fd(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
    return;
  }
  trials_.Try(trial, peer.uid, peer.gid,
              [this, id = session->id()](v1::CuptiTrialResult::Outcome outcome) {
                in_.loop->After(0, [this, id, outcome] { TellTrial(id, outcome); });
              });
}

void Sessions::TellTrial(SessionId id, v1::CuptiTrialResult::Outcome outcome) {
  Session* const session = Find(id);
  Connection* const connection =
      session == nullptr ? nullptr : in_.connections->Find(session->connection());
  if (connection == nullptr || !connection->welcomed || connection->closing) return;
  v1::CuptiTrialResult result;
  result.set_outcome(outcome);
  const auto frame = EncodeControl(proto::FrameType::kCuptiTrial, result.SerializeAsString());
  if (!connection->Send(frame)) return in_.connections->Close(connection->id());
  if (connection->wants_to_write()) in_.connections->Flush(connection);
}

void Sessions::AddFrame(Session* session, const proto::FrameFields& fields,
                        std::span<const std::byte> payload) {
  const uint64_t number = session->block_number(), bytes_before = session->open_bytes();
  session->Add(fields, payload, MonotonicRawNs());
  blocks_.Grew(session, number, bytes_before);
}

void Sessions::OnDeviceReadings(const std::vector<DeviceReading>& readings) {
  for (auto& [id, session] : sessions_) {
    // A trace begins with its first event; what says goodbye has nothing to come.
    const bool is_open = session->connection() != 0 && !session->is_dead && !session->is_closing &&
                         !session->said_goodbye && session->ledger().has_events();
    if (!is_open) continue;
    const v1::DeviceSamples samples = SamplesFor(session->ledger().hello(), readings);
    if (samples.samples_size() == 0) continue;
    session->ledger().NoteDevices(samples);
    const std::string payload = samples.SerializeAsString();
    AddFrame(session.get(), {.type = proto::FrameType::kDeviceSamples},
             std::as_bytes(std::span(payload)));
  }
}

void Sessions::WatchRanks(uint64_t now_ns) {
  constexpr uint64_t kWatchNs = 75'000'000'000;  // Prometheus may ask once a minute
  if (now_ns >= watched_until_ns_) {
    for (auto& [id, session] : sessions_) session->live().Resume();
  }
  watched_until_ns_ = now_ns + kWatchNs;
}

bool Sessions::SendLevel(Session* session, Connection* connection, const v1::LevelChange& change) {
  session->window = change.window();
  return connection->Send(EncodeControl(proto::FrameType::kLevel, change.SerializeAsString()));
}

void Sessions::Order(const v1::LevelChange& change, const std::string& run,
                     const std::function<bool(const Session&)>& is_wanted) {
  in_.plans->Order(run, change, RealtimeNs());
  std::vector<uint64_t> failed;
  for (auto& [id, session] : sessions_) {
    Connection* const connection = in_.connections->Find(session->connection());
    if (connection == nullptr || !connection->welcomed || connection->closing) continue;
    if (!is_wanted(*session)) continue;
    if (!SendLevel(session.get(), connection, change)) failed.push_back(connection->id());
  }
  for (const uint64_t id : failed) in_.connections->Close(id);
}

void Sessions::DeferLevel(const v1::LevelChange& change,
                          const std::function<bool(const Session&)>& is_wanted) {
  for (auto& [id, session] : sessions_) {
    if (session->run.empty() && is_wanted(*session)) session->deferred = {change, RealtimeNs()};
  }
}

void Sessions::OnStoreReply(const StoreReply& reply) {
  if (const auto* const stored = std::get_if<StoredReply>(&reply)) OnStored(*stored);
  if (const auto* const opened = std::get_if<OpenedReply>(&reply)) OnOpened(*opened);
  if (const auto* const positions = std::get_if<PositionsReply>(&reply)) OnPositions(*positions);
  if (const auto* const refused = std::get_if<RefusedReply>(&reply)) OnRefused(*refused);
  if (const auto* const closed = std::get_if<ClosedReply>(&reply)) OnClosed(*closed);
}

void Sessions::OnStored(const StoredReply& reply) {
  if (Session* const session = Find(reply.session)) {
    session->stored_memory = reply.memory;
    session->kept = reply.kept;
    in_.connections->Account(session->peer().uid, session->MemoryBytes(), &session->accounted);
  }
  Connection* const connection = in_.connections->Find(reply.connection);
  if (connection == nullptr || connection->session != reply.session) return;
  if (!connection->SendAck(reply.frames)) return in_.connections->Close(reply.connection);
  if (connection->wants_to_write()) in_.connections->Flush(connection);
}

// Its run decides which plan it hears of, if that came later than the welcome.
void Sessions::OnOpened(const OpenedReply& reply) {
  Session* const session = Find(reply.session);
  if (session == nullptr) return;
  session->run = reply.run;
  in_.plans->RunBegan(reply.run);
  const auto deferred = std::exchange(session->deferred, std::nullopt);
  if (deferred && deferred->ordered_ns > in_.plans->OrderedAt(reply.run)) {
    return Order(deferred->change, reply.run,
                 [&](const Session& other) { return other.run == reply.run; });
  }
  const v1::LevelChange* const order = in_.plans->OwnOrder(reply.run);
  Connection* const connection = in_.connections->Find(session->connection());
  if (order == nullptr || connection == nullptr || !connection->welcomed) return;
  if (!SendLevel(session, connection, *order)) in_.connections->Close(connection->id());
}

void Sessions::OnPositions(const PositionsReply& reply) {
  Connection* const connection = in_.connections->Find(reply.connection);
  if (connection == nullptr || connection->session != reply.session) return;
  if (Session* const session = Find(reply.session)) {
    const std::string& told = session->ledger().socket();
    const bool is_ours = !reply.next_events.empty() || in_.options->TakesSpoolsOf(told);
    if (session->peer().is_spool && !is_ours) {
      return TurnAway(
          session, fmt::format("its collector is that at {}; --all-spools takes it too", told), 0);
    }
    session->Seed(reply.next_events);
  }
  Welcome(connection, &reply);
}

// The disk said no: another process, or this one later, may have better luck.
void Sessions::OnRefused(const RefusedReply& reply) {
  if (Session* const session = Find(reply.session)) {
    TurnAway(session, reply.why, in_.options->limits.retry_ms);
  }
}

void Sessions::TurnAway(Session* session, const std::string& why, uint32_t retry_ms) {
  const uint64_t connection = session->connection();
  session->Detach();
  if (Connection* const open = in_.connections->Find(connection)) {
    open->session = 0;
    Refuse(open, why, retry_ms);
  }
  Forget(session);
}

void Sessions::OnClosed(const ClosedReply& reply) {
  Session* const session = Find(reply.session);
  if (session == nullptr) return;
  session->is_closing = false;
  session->is_closed = true;
  // A process that lives on may come back with later positions. One that has said goodbye is not
  // waited for where its file is found again: nothing is held for as long as it lives.
  const bool is_done = session->said_goodbye && in_.options->resumable;
  if (session->is_dead || session->pidfd() < 0 || is_done || abandoned_) Forget(session);
}

void Sessions::Forget(Session* session) {
  in_.loop->Unwatch(session->tag);
  blocks_.Drop(session);
  in_.connections->Account(session->peer().uid, 0, &session->accounted);
  in_.store->Forget(session->id());
  by_token_.erase({session->peer().uid, session->token()});
  const std::string run = session->run;
  sessions_.erase(session->id());
  if (in_.plans->OwnOrder(run) == nullptr) return;
  const bool goes_on = std::any_of(sessions_.begin(), sessions_.end(),
                                   [&](const auto& entry) { return entry.second->run == run; });
  if (!goes_on) in_.plans->RunEnded(run);
}

void Sessions::AbandonAll() {
  in_.connections->AcceptAll();
  in_.connections->DrainAll();
  abandoned_ = true;
  std::vector<SessionId> open;
  for (const auto& [id, session] : sessions_) open.push_back(id);
  for (const SessionId id : open) {
    Session* const session = Find(id);
    const bool clean = session->said_goodbye || session->is_closed;
    if (session->is_dead && session->end.empty())
      session->end = DescribeEnd(session->pidfd(), session->peer().pid);
    end_.Close(session, clean              ? v1::Ending::HOW_GOODBYE
                        : session->is_dead ? v1::Ending::HOW_DIED
                                           : v1::Ending::HOW_ABANDONED);
  }
}

bool Sessions::all_at_rest() const {
  return std::all_of(sessions_.begin(), sessions_.end(), [](const auto& entry) {
    return entry.second->is_closed && entry.second->connection() == 0;
  });
}

}  // namespace ranktap::collector

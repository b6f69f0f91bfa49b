#include "collector/ingest/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <utility>

namespace ranktap::collector {
namespace {

// While stopping: how long the sockets must have been quiet.
constexpr int kStoppingRoundMs = 10;

}  // namespace

Server::Server(FileDescriptor listener, ServerOptions options)
    : options_(std::move(options)),
      log_(options_.log_path),
      plans_(options_.level, options_.start_level),
      connections_(std::move(listener), &options_, &loop_, &log_, &closer_,
                   {.on_frame =
                        [this](Connection* connection, const proto::FrameView& frame,
                               std::span<const std::byte> bytes) {
                          return OnFrame(connection, frame, bytes);
                        },
                    .on_closed =
                        [this](const Connection& connection) {
                          sessions_->OnConnectionClosed(connection);
                        }}) {}

void Server::Run(TraceStore* store) {
  sessions_ = std::make_unique<Sessions>(Sessions::Context{.options = &options_,
                                                           .loop = &loop_,
                                                           .connections = &connections_,
                                                           .plans = &plans_,
                                                           .log = &log_,
                                                           .closer = &closer_,
                                                           .store = store});
  control_ = std::make_unique<ControlService>(&options_, &loop_, &connections_, sessions_.get(),
                                              &plans_, &log_);
  // While the disk is behind, the bytes stay in the sockets, and the senders' rings hold them.
  loop_.PauseWhile([this, store] {
    return sessions_->abandoned() || store->queued_bytes() > options_.limits.queued_bytes;
  });
  while (!sessions_->abandoned() || !sessions_->all().empty()) {
    const bool is_quiet = loop_.RunOnce(stopping_ ? kStoppingRoundMs : -1);
    // Nothing more in any socket, or on its way to be accepted.
    const bool may_end = stopping_ && is_quiet && !sessions_->abandoned();
    if (may_end && connections_.all_greeted() && sessions_->all_at_rest()) sessions_->AbandonAll();
  }
}

bool Server::OnFrame(Connection* connection, const proto::FrameView& frame,
                     std::span<const std::byte> bytes) {
  if (connection->session != 0) return sessions_->OnFrame(connection, frame, bytes);
  if (frame.header.type == proto::FrameType::kControl) {
    return control_->OnRequest(connection, frame);
  }
  return sessions_->OnHello(connection, frame);
}

void Server::OnStoreReply(StoreReply reply) {
  // A task is copied, and a block should not be.
  auto shared = std::make_shared<StoreReply>(std::move(reply));
  loop_.Post([this, shared] { sessions_->OnStoreReply(*shared); });
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): another thread copies it later
void Server::SetLevel(v1::LevelChange change) {
  loop_.Post([this, change] { sessions_->Order(change, "", [](const Session&) { return true; }); });
}

void Server::Control(v1::ControlRequest::Verb verb) {
  loop_.Post([this, verb] {
    v1::ControlRequest request;
    request.set_verb(verb);
    (void)control_->Answer(request, {.uid = options_.owner, .pid = ::getpid()});
  });
}

void Server::Dump(v1::ControlRequest request, std::function<void(v1::ControlReply)> done) {
  loop_.Post([this, request = std::move(request), done = std::move(done)] {
    control_->Dump(request, {.uid = options_.owner, .pid = ::getpid()}, done);
  });
}

void Server::CountRefusal(const std::string& kind, const std::string& detail) {
  loop_.Post([this, kind, detail] { log_.Count(kind, detail); });
}

void Server::AskFlight(std::vector<pid_t> processes, FlightRequests::Done done) {
  loop_.Post([this, processes = std::move(processes), done = std::move(done)] {
    sessions_->AskFlight(processes, done);
  });
}

void Server::SetWaits(std::vector<std::pair<uid_t, std::string>> waits) {
  loop_.Post([this, waits = std::move(waits)] { control_->SetWaits(waits); });
}

FileDescriptor Server::ConnectSpool(uid_t owner) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  auto ours = std::make_shared<FileDescriptor>(ends[0]);
  loop_.Post([this, ours, owner] {
    connections_.Admit(std::move(*ours), {.uid = owner, .pid = 0, .is_spool = true});
  });
  return FileDescriptor(ends[1]);
}

void Server::OnDeviceReadings(std::vector<DeviceReading> readings) {
  loop_.Post([this, readings = std::move(readings)] { sessions_->OnDeviceReadings(readings); });
}

void Server::Stop(uint64_t grace_ns) {
  loop_.Post([this, grace_ns] {
    stopping_ = true;
    loop_.After(grace_ns, [this] {
      if (!sessions_->abandoned()) sessions_->AbandonAll();
    });
  });
}

}  // namespace ranktap::collector

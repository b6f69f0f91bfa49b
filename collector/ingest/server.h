// The server's thread: accepts agents, checks their frames, cuts them into blocks for the store,
// acks what is stored, notices deaths. One thread runs Run(); only the functions marked so may be
// called from others.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/ingest/connection.h"
#include "collector/ingest/device_sampler.h"
#include "collector/ingest/event_loop.h"
#include "collector/ingest/ingest_log.h"
#include "collector/ingest/level_plans.h"
#include "collector/ingest/limits.h"
#include "collector/ingest/session.h"
#include "collector/ingest/trace_store.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

struct ServerOptions {
  IngestLimits limits;
  v1::Level level = v1::LEVEL_KERNELS;
  // What `ranktap start` means where it names no level.
  v1::Level start_level = v1::LEVEL_KERNELS;
  std::string collector_version;
  std::string collector_id;  // 16 random bytes
  uid_t owner = 0;           // whose agents are served, beside root's
  bool all_users = false;    // everybody's
  // A collector to come goes on where this one stops (RunShelf): processes that live on keep what
  // is in their rings for it, and a new process may have files of an earlier one.
  bool resumable = false;
  std::string log_path;         // empty: no log
  bool sample_devices = false;  // ask NVML once a second
};

class Server {
 public:
  Server(FileDescriptor listener, ServerOptions options);
  ~Server();

  // Until Stop has been called and every session is closed. `store` outlives the call.
  void Run(TraceStore* store);

  // Thread-safe: any of these may be called while Run runs.
  void OnStoreReply(StoreReply reply);
  // Tells every agent; later ones learn it with their welcome.
  void SetLevel(v1::LevelChange change);
  // A start or stop of everything, as the owner would ask for it.
  void Control(v1::ControlRequest::Verb verb);
  // A socket whose other end is read as a process of `owner` that has ended.
  FileDescriptor ConnectSpool(uid_t owner);
  // What NVML says goes to the traces of the processes that see the devices.
  void OnDeviceReadings(std::vector<DeviceReading> readings);
  // Calls `done` on the server's thread.
  void Beat(EventLoop::Task done) { loop_.Post(std::move(done)); }
  // Ends Run: at once when no session is open, otherwise after at most `grace_ns`. What is in the
  // sockets by then is stored; processes that live on are abandoned.
  void Stop(uint64_t grace_ns);

  // After Run.
  const std::map<std::string, uint64_t>& refused() const { return log_.counts(); }

 private:
  // The same, and a refusal of the kernel's is counted.
  EventLoop::Tag Watch(int fd, uint32_t events, EventLoop::OnReady on_ready);
  void Rewatch(EventLoop::Tag tag, uint32_t events);
  void WatchPidfd(Session* session);

  void OnAccept();
  void Admit(FileDescriptor socket, const PeerCredentials& peer);
  bool IsServed(const PeerCredentials& peer);
  void OnNoHello(uint64_t id);
  void OnConnection(uint64_t id, uint32_t events);
  void ReadFrom(Connection* connection, size_t budget);
  bool OnFrame(Connection* connection, const proto::FrameView& frame,
               std::span<const std::byte> bytes);
  bool OnHello(Connection* connection, const proto::FrameView& frame);
  Session* FindOrOpenSession(Connection* connection, const v1::Hello& hello);
  void Reattach(Session* session, Connection* connection, const proto::FrameView& hello);
  void Refuse(Connection* connection, const std::string& why);
  void Welcome(Connection* connection, const PositionsReply* positions);
  void FlushOrClose(Connection* connection);
  void CloseConnection(uint64_t id);

  void OnPidfd(SessionId id);
  void OnNoReturn(SessionId id);
  void DrainSocket(Session* session);
  void TryEnd(Session* session, uint64_t attempts);
  void EndSession(Session* session, v1::Ending::How how);
  void OnBlockGrew(Session* session, uint64_t before);
  void OnBlockOpened(Session* session);
  void CloseBlock(Session* session);
  void Forget(Session* session);

  // server_control.cc: levels, and what `ranktap status`, `start` and `stop` ask for.
  // Orders the change for the run (empty: for all) and tells those sessions.
  void Order(const v1::LevelChange& change, const std::function<bool(const Session&)>& wanted,
             const std::string& run);
  [[nodiscard]] bool Tell(Session* session, Connection* connection, const v1::LevelChange& change);
  bool OnControl(Connection* connection, const proto::FrameView& frame);
  v1::ControlReply Answer(const v1::ControlRequest& request, const PeerCredentials& caller);
  bool ChangeLevels(const v1::ControlRequest& request, const PeerCredentials& caller,
                    v1::ControlReply* reply);
  void DescribeSessions(const v1::ControlRequest& request, const PeerCredentials& caller,
                        v1::ControlReply* reply) const;
  void StoreReadings(const std::vector<DeviceReading>& readings);
  // Puts a frame of our own making into the session's open block.
  void AddFrame(Session* session, const proto::FrameFields& fields,
                std::span<const std::byte> payload);
  bool MayControl(const PeerCredentials& caller, const Session& session) const;

  void OnStored(StoredReply reply);
  void OnOpened(const OpenedReply& reply);
  void OnPositions(const PositionsReply& reply);
  void OnRefused(const RefusedReply& reply);
  void OnClosed(const ClosedReply& reply);
  void AbandonAll();
  bool AllAtRest() const;

  Connection* FindConnection(uint64_t id);
  Session* FindSession(SessionId id);

  ServerOptions options_;
  IngestLog log_;
  EventLoop loop_;
  FileDescriptor listener_;
  EventLoop::Tag listener_tag_ = 0;
  TraceStore* store_ = nullptr;
  std::unordered_map<uint64_t, std::shared_ptr<Connection>> connections_;
  std::unordered_map<SessionId, std::unique_ptr<Session>> sessions_;
  std::map<std::pair<uid_t, std::string>, SessionId> by_token_;
  uint64_t next_id_ = 1;
  LevelPlans plans_;
  std::vector<std::byte> scratch_;
  std::vector<FrameBlock> spare_blocks_;
  std::deque<std::pair<SessionId, uint64_t>> open_order_;  // session, block number
  uint64_t open_bytes_ = 0;
  bool stopping_ = false;
  bool abandoned_ = false;
};

}  // namespace ranktap::collector

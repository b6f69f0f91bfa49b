// The server's thread: accepts agents, checks their frames, cuts them into blocks for the store,
// acks what is stored, notices deaths. One thread runs Run(); only the functions marked so may be
// called from others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collector/file/file_descriptor.h"
#include "collector/ingest/control/control_service.h"
#include "collector/ingest/control/level_plans.h"
#include "collector/ingest/device_sampler.h"
#include "collector/ingest/ingest_log.h"
#include "collector/ingest/net/closer.h"
#include "collector/ingest/net/connections.h"
#include "collector/ingest/net/event_loop.h"
#include "collector/ingest/server_options.h"
#include "collector/ingest/session/sessions.h"
#include "collector/ingest/store/trace_store.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

class Server {
 public:
  Server(FileDescriptor listener, ServerOptions options);

  // Until Stop has been called and every session is closed. `store` outlives the call.
  void Run(TraceStore* store);

  // Thread-safe: any of these may be called while Run runs.
  void OnStoreReply(StoreReply reply);
  // Tells every agent; later ones learn it with their welcome.
  void SetLevel(v1::LevelChange change);
  // A start or stop of everything, as the owner would ask for it.
  void Control(v1::ControlRequest::Verb verb);
  // `done` must not wait; it may be called on any thread of the collector's.
  void Dump(v1::ControlRequest request, std::function<void(v1::ControlReply)> done);
  // `done`: on the server's thread, after 5 s at the latest; never where Run has ended.
  void AskFlight(std::vector<pid_t> processes, FlightRequests::Done done);
  // A socket whose other end is read as a process of `owner` that has ended.
  FileDescriptor ConnectSpool(uid_t owner);
  // Counts it beside what ingest turned away.
  void CountRefusal(const std::string& kind, const std::string& detail);
  // What `status` tells of ranks that wait, each sentence to its user.
  void SetWaits(std::vector<std::pair<uid_t, std::string>> waits);
  // NVML's readings go to the traces of the processes that see the devices.
  void OnDeviceReadings(std::vector<DeviceReading> readings);
  // Calls `done` on the server's thread.
  void Ping(EventLoop::Task done) { loop_.Post(std::move(done)); }
  // Ends Run: at once when no session is open, otherwise after at most `grace_ns`. It stores what
  // is in the sockets by then and abandons processes that live on.
  void Stop(uint64_t grace_ns);

  // After Run.
  const std::map<std::string, uint64_t>& refused() const { return log_.counts(); }

 private:
  bool OnFrame(Connection* connection, const proto::FrameView& frame,
               std::span<const std::byte> bytes);

  ServerOptions options_;
  IngestLog log_;
  Closer closer_;
  EventLoop loop_;
  LevelPlans plans_;
  Connections connections_;
  // From the beginning of Run; nothing runs on the loop before.
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<ControlService> control_;
  bool stopping_ = false;
};

}  // namespace ranktap::collector

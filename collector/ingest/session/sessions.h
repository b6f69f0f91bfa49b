// The open sessions: how each begins (hello, then welcome or refusal), and what it is told and
// brings. session_end.h has its end. Lives on the server's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/ingest/control/level_plans.h"
#include "collector/ingest/cupti_trials.h"
#include "collector/ingest/device_sampler.h"
#include "collector/ingest/ingest_log.h"
#include "collector/ingest/net/connections.h"
#include "collector/ingest/net/event_loop.h"
#include "collector/ingest/server_options.h"
#include "collector/ingest/session/flight_requests.h"
#include "collector/ingest/session/open_blocks.h"
#include "collector/ingest/session/session.h"
#include "collector/ingest/session/session_end.h"
#include "collector/ingest/store/trace_store.h"

namespace ranktap::collector {

class Sessions {
 public:
  // The objects that all of them stand on; they outlive this.
  struct Context {
    const ServerOptions* options;
    EventLoop* loop;
    Connections* connections;
    LevelPlans* plans;
    IngestLog* log;
    Closer* closer;
    TraceStore* store;
  };
  explicit Sessions(const Context& context);

  // A connection's first frame. False: no hello, and the connection is of no use.
  bool OnHello(Connection* connection, const proto::FrameView& frame);
  // Each later one. False: not acceptable.
  bool OnFrame(Connection* connection, const proto::FrameView& frame,
               std::span<const std::byte> bytes);
  void OnConnectionClosed(const Connection& connection);
  void OnStoreReply(const StoreReply& reply);
  // To the traces of the processes that see the devices.
  void OnDeviceReadings(const std::vector<DeviceReading>& readings);

  // The change becomes the plan of `run` (empty: of all), and the sessions that `is_wanted` says
  // hear of it.
  void Order(const v1::LevelChange& change, const std::string& run,
             const std::function<bool(const Session&)>& is_wanted);
  // Those of the wanted whose run is not known yet: the change becomes their run's plan once it is,
  // unless that has a newer one by then.
  void DeferLevel(const v1::LevelChange& change,
                  const std::function<bool(const Session&)>& is_wanted);

  // What PyTorch's Flight Recorder holds in these processes, of those in which an agent is.
  void AskFlight(const std::vector<pid_t>& processes, FlightRequests::Done done) {
    flights_.Ask(sessions_, processes, std::move(done));
  }

  // What is kept of these sessions' runs is saved, with all that has come so far.
  void Dump(const std::vector<SessionId>& ids, DumpOrder order) {
    for (const SessionId id : ids) {
      if (Session* const session = Find(id)) blocks_.Close(session);
    }
    in_.store->Dump(ids, std::move(order));
  }

  // Events are read, too, for as long as this is called every few seconds: sessions say what their
  // ranks do now.
  void WatchRanks(uint64_t now_ns);

  // Ends all of them: what is in the sockets is stored, and processes that live on are left alone.
  // Only the store's replies count from then on.
  void AbandonAll();
  bool abandoned() const { return abandoned_; }

  const std::unordered_map<SessionId, std::unique_ptr<Session>>& all() const { return sessions_; }
  // Nothing has come since each one's file was closed, and nobody is connected.
  bool all_at_rest() const;

 private:
  Session* Find(SessionId id) const;
  Session* FindOrOpen(Connection* connection, const v1::Hello& hello);
  void WatchPidfd(Session* session);
  void Reattach(Session* session, Connection* connection, const proto::FrameView& hello);
  // `retry_ms` 0: never, since it does not go away by itself.
  void Refuse(Connection* connection, const std::string& why, uint32_t retry_ms);
  void Welcome(Connection* connection, const PositionsReply* positions);
  [[nodiscard]] bool SendLevel(Session* session, Connection* connection,
                               const v1::LevelChange& change);
  // Puts a frame of our own making into the session's open block.
  void AddFrame(Session* session, const proto::FrameFields& fields,
                std::span<const std::byte> payload);

  void TryCupti(Session* session, const Connection& connection, const proto::FrameView& frame);
  void TellTrial(SessionId id, v1::CuptiTrialResult::Outcome outcome);

  void OnStored(const StoredReply& reply);
  void OnOpened(const OpenedReply& reply);
  void OnPositions(const PositionsReply& reply);
  void TurnAway(Session* session, const std::string& why, uint32_t retry_ms);
  void OnRefused(const RefusedReply& reply);
  void OnClosed(const ClosedReply& reply);

  void Forget(Session* session);

  Context in_;
  std::unordered_map<SessionId, std::unique_ptr<Session>> sessions_;
  std::map<std::pair<uid_t, std::string>, SessionId> by_token_;
  SessionId last_id_ = 0;
  OpenBlocks blocks_;
  CuptiTrials trials_;
  FlightRequests flights_{in_.loop, in_.connections};
  SessionEnd end_;
  bool abandoned_ = false;
  uint64_t watched_until_ns_ = 0;
  LiveColumns live_columns_;
};

}  // namespace ranktap::collector

// Answers `ranktap status`, `start` and `stop`: about which processes the caller may ask, and which
// levels follow. Lives on the server's thread.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collector/ingest/control/level_plans.h"
#include "collector/ingest/ingest_log.h"
#include "collector/ingest/net/connections.h"
#include "collector/ingest/net/peer.h"
#include "collector/ingest/server_options.h"
#include "collector/ingest/session/sessions.h"
#include "ranktap/v1/control.pb.h"
#include "ranktap/v1/status.pb.h"

namespace ranktap::collector {

class ControlService {
 public:
  // The objects behind the pointers outlive this.
  ControlService(const ServerOptions* options, EventLoop* loop, Connections* connections,
                 Sessions* sessions, LevelPlans* plans, const IngestLog* log)
      : options_(options),
        loop_(loop),
        connections_(connections),
        sessions_(sessions),
        plans_(plans),
        log_(log) {}

  // A connection's only frame: the reply goes out and the connection is closed. False: it is not
  // acceptable.
  bool OnRequest(Connection* connection, const proto::FrameView& frame);
  // The request's levels are ordered when this returns. An error is the reply's problem.
  v1::ControlReply Answer(const v1::ControlRequest& request, const PeerCredentials& caller);
  // Of a DUMP. `done`: of the reply, which may come at once, on any thread.
  using TakeReply = std::function<void(v1::ControlReply)>;
  void Dump(const v1::ControlRequest& request, const PeerCredentials& caller, TakeReply done);
  // What replies tell of ranks that wait, each to its user.
  void SetWaits(std::vector<std::pair<uid_t, std::string>> waits) { waits_ = std::move(waits); }

 private:
  bool ChangeLevels(const v1::ControlRequest& request, const PeerCredentials& caller,
                    v1::ControlReply* reply);
  void DescribeSessions(const v1::ControlRequest& request, const PeerCredentials& caller,
                        v1::ControlReply* reply) const;
  // False, and the reply says why, where the caller has no such job here.
  bool FindJob(const v1::ControlRequest& request, const PeerCredentials& caller,
               v1::ControlReply* reply) const;
  void Reply(Connection* connection, const v1::ControlReply& reply);
  bool MayControl(const PeerCredentials& caller, const Session& session) const;

  const ServerOptions* options_;
  EventLoop* loop_;
  Connections* connections_;
  Sessions* sessions_;
  LevelPlans* plans_;
  const IngestLog* log_;
  std::vector<std::pair<uid_t, std::string>> waits_;
};

}  // namespace ranktap::collector

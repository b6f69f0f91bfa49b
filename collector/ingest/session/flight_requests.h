// Asks agents for what PyTorch's Flight Recorder holds in their processes, and puts the parts of
// the answers together. Lives on the server's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "collector/ingest/net/connections.h"
#include "collector/ingest/net/event_loop.h"
#include "collector/ingest/session/session.h"
#include "proto/frame.h"

namespace ranktap::collector {

// Of one process. As it came: whoever reads it expects anything.
struct FlightRecord {
  pid_t pid = 0;
  std::map<std::string, std::string> dumps;  // by backend; JSON
  std::string problem;                       // why there is none, or not all
};

class FlightRequests {
 public:
  using Done = std::function<void(std::vector<FlightRecord>)>;

  FlightRequests(EventLoop* loop, Connections* connections)
      : loop_(loop), connections_(connections) {}

  // Those of `sessions` that are of these processes. `done`: once, when all have answered or ended,
  // or 5 s have passed. A request before, if it is still open, ends with what it has.
  void Ask(const std::unordered_map<SessionId, std::unique_ptr<Session>>& sessions,
           const std::vector<pid_t>& processes, Done done);
  void Take(SessionId session, std::span<const std::byte> payload);
  void OnConnectionClosed(SessionId session) { Settle(session); }

 private:
  struct Awaited {
    FlightRecord record;
    size_t bytes = 0;
    bool is_settled = false;
  };
  void Settle(SessionId session);
  void End(const char* why);

  EventLoop* loop_;
  Connections* connections_;
  uint64_t number_ = 0;  // of the last request
  std::map<SessionId, Awaited> awaited_;
  Done done_;  // empty: no request is open
};

}  // namespace ranktap::collector

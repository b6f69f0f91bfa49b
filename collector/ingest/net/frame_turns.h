// Who may begin another frame. A frame that does not fit into a socket's buffer is read in parts,
// and each connection holds what it has of one: beside 512 senders that was 90 MiB. A user's
// connections therefore begin frames in turn while half frames take kMostHalfBytes; those that have
// begun go on. Lives on the server's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>

#include "collector/ingest/net/event_loop.h"

namespace ranktap::collector {

class FrameTurns {
 public:
  // Enough that the senders of half frames fill their sockets while others are read: 64 of them
  // never wait.
  static constexpr uint64_t kMostHalfBytes = 12u << 20;
  // Where no half frame has grown for so long, their senders are not waited for: everybody has a
  // turn.
  static constexpr uint64_t kPatienceNs = 20'000'000;

  // `begin`: the connection has its turn. False: it is gone.
  FrameTurns(EventLoop* loop, std::function<bool(uint64_t id)> begin)
      : loop_(loop), begin_(std::move(begin)) {}

  // A half frame of the user's has `bytes` now and had `before`. `took_turn`: this was the
  // connection's turn.
  void Update(uid_t user, uint64_t bytes, uint64_t before, bool took_turn);
  bool MustWait(uid_t user) const;
  void Wait(uid_t user, uint64_t id);

 private:
  struct Turns {
    uint64_t half_bytes = 0;
    uint64_t given = 0;    // turns that have not been taken yet
    uint64_t updates = 0;  // by which the timer sees that something moves
    bool has_timer = false;
    std::deque<uint64_t> waiting;
    bool is_full() const;
  };
  void GiveTurns(Turns* turns, bool to_all);
  void StartTimer(uid_t user, Turns* turns);

  EventLoop* loop_;
  std::function<bool(uint64_t id)> begin_;
  std::map<uid_t, Turns> turns_;
};

}  // namespace ranktap::collector

// The memory that each user's processes make a collector hold: half frames, names, positions. At
// its bound a user's sockets are left alone. The processes' rings take over and count what they
// lose; one that connects anew is refused, and writes into its spool. Lives on the server's thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace ranktap::collector {

class UserMemory {
 public:
  // `on_room`: called when a user who was at the bound is well below it again.
  UserMemory(uint64_t most_bytes, std::function<void(uid_t)> on_room)
      : most_bytes_(most_bytes), on_room_(std::move(on_room)) {}

  // One holder of the user's has now `bytes` and had `*before`, which becomes `bytes`.
  void Update(uid_t user, uint64_t bytes, uint64_t* before) {
    uint64_t& held = held_[user];
    held += bytes - *before;
    *before = bytes;
    if (held > most_bytes_) full_.insert(user);
    // An eighth below: else every frame would stop and start all of them.
    if (held <= most_bytes_ - most_bytes_ / 8 && full_.erase(user) > 0) on_room_(user);
    if (held == 0) held_.erase(user);
  }
  bool IsFull(uid_t user) const { return full_.contains(user); }

 private:
  uint64_t most_bytes_;
  std::function<void(uid_t)> on_room_;
  std::map<uid_t, uint64_t> held_;
  std::set<uid_t> full_;
};

}  // namespace ranktap::collector

// The blocks that sessions fill: each goes to the store when it is full, old, or one of too many.
// A small one may grow older: a rank with little to say makes one block a second, not five. Lives
// on the server's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>

#include "collector/ingest/net/event_loop.h"
#include "collector/ingest/session/session.h"
#include "collector/ingest/store/trace_store.h"

namespace ranktap::collector {

class OpenBlocks {
 public:
  using Find = std::function<Session*(SessionId)>;

  // All blocks together hold about `most_bytes`; over that the oldest are closed. A small one stays
  // open for `small_block_ages` of kBlockAgeNs. `find` gives null
  // for a session that is gone. The objects behind the pointers outlive this.
  OpenBlocks(uint64_t most_bytes, int small_block_ages, EventLoop* loop, TraceStore* store,
             Find find)
      : most_bytes_(most_bytes),
        small_block_ages_(small_block_ages),
        loop_(loop),
        store_(store),
        find_(std::move(find)) {}

  // After each addition to the session's block. `number` and `bytes` are those of its block before,
  // open or not. The block may be closed now.
  void Grew(Session* session, uint64_t number, uint64_t bytes);
  // Nothing happens where none is open.
  void Close(Session* session);
  // Forgets a session: it gives back what the session's block held.
  void Drop(Session* session);
  uint64_t bytes() const { return bytes_; }

 private:
  using BlockName = std::pair<SessionId, uint64_t>;  // and the block's number
  Session* FindOpen(const BlockName& block) const;
  // Closes the block when it is old. `age`: how many kBlockAgeNs it has been open by then.
  void CloseAtAge(const BlockName& block, int age);

  uint64_t most_bytes_;
  int small_block_ages_;
  EventLoop* loop_;
  TraceStore* store_;
  Find find_;
  std::deque<BlockName> oldest_first_;
  uint64_t bytes_ = 0;
};

}  // namespace ranktap::collector

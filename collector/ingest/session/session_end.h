// How a session ends: its connection or its process is gone, or the collector stops. It decides
// when nothing more can come, and gives the session to the store to be closed.
//
//   connection closed ──┬─ goodbye was said ──────────────────────────► Close(GOODBYE)
//                       ├─ process is dead ─► its spool, if it has one ─► how did it die? (retries)
//                       │                                                 ► Close(DIED)
//                       ├─ it was a spool ────────────────────────────► Close(ABANDONED)
//                       └─ process lives ─► it may come back, or its pidfd speaks
//   pidfd speaks ─► the socket is read to its end, the connection closed: as above
//
// Lives on the server's thread.
#pragma once

#include <functional>
#include <string>

#include "collector/ingest/net/connections.h"
#include "collector/ingest/net/event_loop.h"
#include "collector/ingest/server_options.h"
#include "collector/ingest/session/open_blocks.h"
#include "collector/ingest/session/session.h"
#include "collector/ingest/store/trace_store.h"

namespace ranktap::collector {

class SessionEnd {
 public:
  // The objects that it stands on; they outlive this. `find` gives null for a session that is gone.
  struct Context {
    const ServerOptions* options;
    EventLoop* loop;
    Connections* connections;
    TraceStore* store;
    OpenBlocks* blocks;
    OpenBlocks::Find find;
  };
  explicit SessionEnd(Context context) : in_(std::move(context)) {}

  // The session's own, and the last one it had. `was_spool`: what the process had left.
  void OnConnectionClosed(Session* session, bool was_spool);
  // The process has ended, by its pidfd.
  void OnProcessEnded(SessionId id);
  // Gives the session to the store, once. TraceStore answers when its file is closed.
  void Close(Session* session, v1::Ending::How how);

 private:
  void OnNoReturn(SessionId id);
  // Now, or when a spool that the process may have left has been taken in.
  void CloseAfterSpool(Session* session);
  // Once it is known how the process died.
  void CloseWhenKnown(Session* session, uint64_t attempts);

  Context in_;
};

}  // namespace ranktap::collector

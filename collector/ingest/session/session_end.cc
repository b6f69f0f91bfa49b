#include "collector/ingest/session/session_end.h"

#include <utility>

#include "collector/ingest/monotonic_clock.h"

namespace ranktap::collector {
namespace {

// A zombie tells how it died; its parent may take some time to make it one, or to reap it.
constexpr uint64_t kEndRetryNs = 10'000'000;
constexpr uint64_t kEndRetries = 20;
// Whoever takes spools in (SpoolAdopter) looks every 5 s.
constexpr uint64_t kSpoolPatienceNs = 12'000'000'000;

}  // namespace

void SessionEnd::OnConnectionClosed(Session* session, bool was_spool) {
  in_.blocks->Close(session);
  session->Detach();
  session->detached_at = MonotonicRawNs();
  if (session->is_closing) return;
  if (session->said_goodbye) {
    Close(session, v1::Ending::HOW_GOODBYE);
  } else if (session->is_dead && was_spool) {
    CloseWhenKnown(session, 0);
  } else if (session->is_dead) {
    CloseAfterSpool(session);
  } else if (session->peer().is_spool) {
    session->is_dead = true;
    Close(session, v1::Ending::HOW_ABANDONED);
  } else if (session->pidfd() < 0) {
    in_.loop->After(in_.options->limits.reconnect_ns,
                    [this, id = session->id()] { OnNoReturn(id); });
  }
  // Otherwise the process lives: it may come back, and the pidfd tells when it cannot.
}

void SessionEnd::OnProcessEnded(SessionId id) {
  Session* const session = in_.find(id);
  if (session == nullptr || session->is_dead) return;
  in_.loop->Unwatch(session->tag);
  session->is_dead = true;
  // A forked child may hold the socket open: what the dead process sent is there all the same. The
  // session ends with its connection.
  Connection* const connection = in_.connections->Find(session->connection());
  if (connection == nullptr) {
    if (!session->is_closing) CloseAfterSpool(session);
  } else if (!connection->peer().is_spool) {
    in_.connections->Drain(connection);
    in_.connections->Close(connection->id());
  }
}

void SessionEnd::CloseAfterSpool(Session* session) {
  const bool has_spooled = session->segment != nullptr && session->segment->SaysSpooled();
  if (!has_spooled || !in_.options->resumable || session->is_closed) {
    return CloseWhenKnown(session, 0);
  }
  session->end = DescribeEnd(session->pidfd(), session->peer().pid);
  in_.loop->After(kSpoolPatienceNs, [this, id = session->id()] {
    Session* const waiting = in_.find(id);
    if (waiting != nullptr && waiting->connection() == 0) CloseWhenKnown(waiting, 0);
  });
}

void SessionEnd::OnNoReturn(SessionId id) {
  Session* const session = in_.find(id);
  if (session == nullptr || session->connection() != 0 || session->detached_at == 0) return;
  session->is_dead = true;
  Close(session, v1::Ending::HOW_DIED);
}

void SessionEnd::CloseWhenKnown(Session* session, uint64_t attempts) {
  if (session->is_closing) return;
  if (!session->said_goodbye && session->pidfd() >= 0 && session->end.empty()) {
    session->end = DescribeEnd(session->pidfd(), session->peer().pid);
    if (session->end.empty() && attempts < kEndRetries) {
      in_.loop->After(kEndRetryNs, [this, id = session->id(), attempts] {
        if (Session* const found = in_.find(id)) CloseWhenKnown(found, attempts + 1);
      });
      return;
    }
  }
  Close(session, session->said_goodbye ? v1::Ending::HOW_GOODBYE : v1::Ending::HOW_DIED);
}

void SessionEnd::Close(Session* session, v1::Ending::How how) {
  if (session->is_closing) return;
  in_.blocks->Close(session);
  session->is_closing = true;
  v1::Ending ending;
  ending.set_how(how);
  ending.set_detail(session->end);
  if (how == v1::Ending::HOW_ABANDONED) {
    ending.set_detail(session->peer().is_spool
                          ? "ended while no collector was there; from its spool"
                          : "the process was still running when the collector stopped");
  }
  const bool leave_rings = how == v1::Ending::HOW_ABANDONED && in_.options->resumable;
  in_.store->Close(session->id(), leave_rings ? nullptr : session->segment, session->is_dead,
                   std::move(ending));
}

}  // namespace ranktap::collector

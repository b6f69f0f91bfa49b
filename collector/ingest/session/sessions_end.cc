// A session whose connection or process is gone, and its end. The rest of Sessions.
#include <algorithm>

#include "collector/ingest/monotonic_clock.h"
#include "collector/ingest/session/sessions.h"

namespace ranktap::collector {
namespace {

// A zombie tells how it died; its parent may take some time to make it one, or to reap it.
constexpr uint64_t kEndRetryNs = 10'000'000;
constexpr uint64_t kEndRetries = 20;
// A process that was away for so long may have gone on in its spool, which its rings do not hold
// any more. Whoever takes spools in (SpoolAdopter) looks every 5 s.
constexpr uint64_t kMayHaveSpooledNs = 500'000'000;
constexpr uint64_t kSpoolPatienceNs = 12'000'000'000;

}  // namespace

void Sessions::OnConnectionClosed(const Connection& connection) {
  Session* const session = Find(connection.session);
  if (session == nullptr || session->connection() != connection.id()) return;
  blocks_.Close(session);
  session->Detach();
  session->detached_at = MonotonicRawNs();
  if (session->is_closing) return;
  if (session->said_goodbye) {
    End(session, v1::Ending::HOW_GOODBYE);
  } else if (session->is_dead) {
    TryEnd(session, 0);
  } else if (session->peer().is_spool) {
    session->is_dead = true;
    End(session, v1::Ending::HOW_ABANDONED);
  } else if (session->pidfd() < 0) {
    in_.loop->After(in_.options->limits.reconnect_ns,
                    [this, id = session->id()] { OnNoReturn(id); });
  }
  // Otherwise the process lives: it may come back, and the pidfd tells when it cannot.
}

void Sessions::OnPidfd(SessionId id) {
  Session* const session = Find(id);
  if (session == nullptr || session->is_dead) return;
  in_.loop->Unwatch(session->tag);
  session->is_dead = true;
  // A forked child may hold the socket open: what the dead process sent is there all the same. The
  // session ends with its connection.
  if (Connection* const connection = in_.connections->Find(session->connection())) {
    in_.connections->Drain(connection);
    in_.connections->Close(connection->id());
  }
  if (Find(id) != nullptr && !session->is_closing) EndAfterSpool(session);
}

void Sessions::EndAfterSpool(Session* session) {
  const bool was_away = session->connection() == 0 && session->detached_at != 0 &&
                        MonotonicRawNs() - session->detached_at > kMayHaveSpooledNs;
  if (!was_away || !in_.options->resumable || session->is_closed) return TryEnd(session, 0);
  session->end = DescribeEnd(session->pidfd(), session->peer().pid);
  in_.loop->After(kSpoolPatienceNs, [this, id = session->id()] {
    Session* const waiting = Find(id);
    if (waiting != nullptr && waiting->connection() == 0) TryEnd(waiting, 0);
  });
}

void Sessions::OnNoReturn(SessionId id) {
  Session* const session = Find(id);
  if (session == nullptr || session->connection() != 0 || session->detached_at == 0) return;
  session->is_dead = true;
  End(session, v1::Ending::HOW_DIED);
}

void Sessions::TryEnd(Session* session, uint64_t attempts) {
  if (session->is_closing) return;
  if (!session->said_goodbye && session->pidfd() >= 0 && session->end.empty()) {
    session->end = DescribeEnd(session->pidfd(), session->peer().pid);
    if (session->end.empty() && attempts < kEndRetries) {
      in_.loop->After(kEndRetryNs, [this, id = session->id(), attempts] {
        if (Session* const again = Find(id)) TryEnd(again, attempts + 1);
      });
      return;
    }
  }
  End(session, session->said_goodbye ? v1::Ending::HOW_GOODBYE : v1::Ending::HOW_DIED);
}

void Sessions::End(Session* session, v1::Ending::How how) {
  if (session->is_closing) return;
  blocks_.Close(session);
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

void Sessions::Forget(Session* session) {
  in_.loop->Unwatch(session->tag);
  blocks_.Drop(session);
  in_.connections->Account(session->peer().uid, 0, &session->accounted);
  in_.store->Forget(session->id());
  by_token_.erase({session->peer().uid, session->token()});
  const std::string run = session->run;
  sessions_.erase(session->id());
  if (in_.plans->OwnOrder(run) == nullptr) return;
  const bool goes_on = std::any_of(sessions_.begin(), sessions_.end(),
                                   [&](const auto& entry) { return entry.second->run == run; });
  if (!goes_on) in_.plans->RunEnded(run);
}

void Sessions::AbandonAll() {
  in_.connections->AcceptAll();
  in_.connections->DrainAll();
  abandoned_ = true;
  std::vector<SessionId> open;
  for (const auto& [id, session] : sessions_) open.push_back(id);
  for (const SessionId id : open) {
    Session* const session = Find(id);
    const bool clean = session->said_goodbye || session->is_closed;
    if (session->is_dead) session->end = DescribeEnd(session->pidfd(), session->peer().pid);
    End(session, clean              ? v1::Ending::HOW_GOODBYE
                 : session->is_dead ? v1::Ending::HOW_DIED
                                    : v1::Ending::HOW_ABANDONED);
  }
}

bool Sessions::all_at_rest() const {
  return std::all_of(sessions_.begin(), sessions_.end(), [](const auto& entry) {
    return entry.second->is_closed && entry.second->connection() == 0;
  });
}

}  // namespace ranktap::collector

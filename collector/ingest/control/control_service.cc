#include "collector/ingest/control/control_service.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "collector/ingest/monotonic_clock.h"
#include "collector/ingest/net/handshake.h"

namespace ranktap::collector {
namespace {

// A reply stays below a frame's limit; a process is some 300 bytes, its notes cut, and what it does
// now another 500.
constexpr int kMostProcesses = 2000, kMostLive = 1000;
constexpr int kMostNotes = 4;
constexpr size_t kMostNoteBytes = 200;
constexpr size_t kMostWaitBytes = 1000;
constexpr size_t kMostNames = 20;  // of jobs, in a sentence
constexpr size_t kMostNameBytes = 100;

// By its launcher's name, or by its run's directory, its path or its last part.
bool IsOfJob(const Session& session, const std::string& job) {
  const std::string& run = session.run;
  return job.empty() || session.ledger().hello().rank().job() == job ||
         (!run.empty() && (run == job || run.substr(run.rfind('/') + 1) == job));
}

std::string NameOf(const Session& session) {
  const std::string& job = session.ledger().hello().rank().job();
  return job.empty() ? session.run.substr(session.run.rfind('/') + 1) : job;
}

void DescribeCleaning(const RunCleaning& done, bool may_see_all, v1::RunCleaning* told) {
  told->set_keep_ns(done.limits.age_ns);
  told->set_max_bytes(done.limits.bytes);
  if (!may_see_all) return;
  told->set_runs_removed(done.runs_removed);
  told->set_bytes_removed(done.bytes_removed);
  told->set_bytes_kept(done.bytes_kept);
}

void CutTexts(v1::ProcessStatus* status) {
  while (status->notes_size() > kMostNotes) status->mutable_notes()->RemoveLast();
  for (std::string& note : *status->mutable_notes()) {
    if (note.size() > kMostNoteBytes) note.resize(kMostNoteBytes);
  }
  if (status->schedule().size() > kMostNoteBytes) status->clear_schedule();
}

}  // namespace

bool ControlService::MayControl(const PeerCredentials& caller, const Session& session) const {
  return caller.uid == 0 || caller.uid == options_->owner || caller.uid == session.peer().uid;
}

bool ControlService::OnRequest(Connection* connection, const proto::FrameView& frame) {
  v1::ControlRequest request;
  if (connection->peer().is_spool ||
      !request.ParseFromArray(frame.payload.data(), static_cast<int>(frame.payload.size()))) {
    return false;
  }
  if (request.verb() == v1::ControlRequest::VERB_DUMP) {
    connection->is_answered_later = true;
    Dump(request, connection->peer(), [this, id = connection->id()](v1::ControlReply reply) {
      loop_->Post([this, id, reply = std::move(reply)] {
        if (Connection* const asking = connections_->Find(id)) Reply(asking, reply);
      });
    });
    return true;
  }
  Reply(connection, Answer(request, connection->peer()));
  return true;
}

void ControlService::Reply(Connection* connection, const v1::ControlReply& reply) {
  const auto bytes = EncodeControl(proto::FrameType::kReport, reply.SerializeAsString());
  connection->closing = true;  // one request, one reply
  if (connection->SendReply(bytes)) connections_->Flush(connection);
}

void ControlService::Dump(const v1::ControlRequest& request, const PeerCredentials& caller,
                          TakeReply done) {
  v1::ControlReply reply;
  if (!FindJob(request, caller, &reply)) return done(std::move(reply));
  std::vector<SessionId> wanted;
  for (const auto& [id, session] : sessions_->all()) {
    if (MayControl(caller, *session) && IsOfJob(*session, request.job())) wanted.push_back(id);
  }
  if (wanted.empty()) {
    reply.set_problem("no process is connected here");
    return done(std::move(reply));
  }
  sessions_->Dump(wanted, {.last_ns = request.last_ns(),
                           .reason = request.reason(),
                           .done = [done = std::move(done)](std::vector<v1::Dump> dumps) {
                             v1::ControlReply told;
                             for (v1::Dump& dump : dumps) *told.add_dumps() = std::move(dump);
                             done(std::move(told));
                           }});
}

v1::ControlReply ControlService::Answer(const v1::ControlRequest& request,
                                        const PeerCredentials& caller) {
  v1::ControlReply reply;
  reply.set_collector_version(options_->collector_version);
  reply.set_collector_pid(static_cast<uint32_t>(::getpid()));
  if (options_->cleaning != nullptr) {
    DescribeCleaning(*options_->cleaning, caller.uid == 0 || caller.uid == options_->owner,
                     reply.mutable_cleaning());
  }
  if (!FindJob(request, caller, &reply)) return reply;
  if (request.verb() != v1::ControlRequest::VERB_STATUS && !ChangeLevels(request, caller, &reply)) {
    return reply;
  }
  DescribeSessions(request, caller, &reply);
  for (const auto& [user, sentence] : waits_) {
    if (caller.uid == 0 || caller.uid == options_->owner || caller.uid == user) {
      reply.add_waits(sentence.substr(0, kMostWaitBytes));
    }
  }
  for (const auto& [reason, count] : log_->counts()) {
    v1::Refusal* const refusal = reply.add_refused();
    refusal->set_reason(reason);
    refusal->set_count(count);
  }
  return reply;
}

bool ControlService::FindJob(const v1::ControlRequest& request, const PeerCredentials& caller,
                             v1::ControlReply* reply) const {
  std::set<std::string> jobs;
  bool is_known = request.job().empty();
  for (const auto& [id, session] : sessions_->all()) {
    if (!MayControl(caller, *session)) continue;
    jobs.insert(NameOf(*session));
    is_known = is_known || IsOfJob(*session, request.job());
  }
  if (is_known) return true;
  std::string names;
  size_t named = 0;
  for (const std::string& job : jobs) {
    if (++named > kMostNames) break;
    names += (names.empty() ? "" : ", ") + job.substr(0, kMostNameBytes);
  }
  if (named > kMostNames) {
    names += fmt::format(" and {} more", jobs.size() - kMostNames);
  }
  reply->set_problem(fmt::format("no process of '{}' is connected here; {}", request.job(),
                                 names.empty() ? "none is at all" : "there are: " + names));
  return false;
}

bool ControlService::ChangeLevels(const v1::ControlRequest& request, const PeerCredentials& caller,
                                  v1::ControlReply* reply) {
  const auto change = plans_->ChangeFor(request, RealtimeNs());
  if (!change) {
    reply->set_problem(change.message());
    return false;
  }
  const auto is_wanted = [&](const Session& session) {
    return MayControl(caller, session) && IsOfJob(session, request.job());
  };
  const bool all = request.job().empty() && (caller.uid == 0 || caller.uid == options_->owner);
  // The plan of "" is everybody's, so that only `all` may make it.
  std::set<std::string> runs;
  if (all) runs.insert("");
  for (const auto& [id, session] : sessions_->all()) {
    if (!all && is_wanted(*session) && !session->run.empty()) runs.insert(session->run);
  }
  if (!all) sessions_->DeferLevel(*change, is_wanted);
  for (const std::string& run : runs) {
    sessions_->Order(*change, run, [&](const Session& session) {
      return is_wanted(session) && (all || session.run == run);
    });
  }
  reply->set_window(change->window());
  reply->set_level(change->level());
  reply->set_at_realtime_ns(change->at_realtime_ns());
  reply->set_until_realtime_ns(change->until_realtime_ns());
  return true;
}

void ControlService::DescribeSessions(const v1::ControlRequest& request,
                                      const PeerCredentials& caller,
                                      v1::ControlReply* reply) const {
  uint64_t left_out = 0;
  const uint64_t now = MonotonicRawNs();
  if (request.live()) sessions_->WatchRanks(now);
  for (const auto& [id, session] : sessions_->all()) {
    if (!MayControl(caller, *session) || !IsOfJob(*session, request.job())) continue;
    if (session->peer().is_spool) continue;
    if (reply->processes_size() >= (request.live() ? kMostLive : kMostProcesses)) {
      ++left_out;
      continue;
    }
    v1::ProcessStatus* const status = reply->add_processes();
    session->ledger().Describe(status);
    CutTexts(status);
    status->set_session(id);
    status->set_run(session->run);
    status->set_pid(static_cast<uint32_t>(session->peer().pid));
    status->set_uid(session->peer().uid);
    status->set_window(session->window);
    if (options_->keep.any()) {
      const uint64_t since = session->kept.since_ns;
      status->set_kept_ns(since == 0 ? 0 : now - std::min(now, since));
      status->set_kept_bytes(session->kept.bytes);
    }
    if (request.live()) session->live().Describe(now, status->mutable_live());
    status->set_state(session->is_dead || session->is_closing ? v1::ProcessStatus::STATE_ENDING
                      : session->connection() == 0            ? v1::ProcessStatus::STATE_AWAY
                                                              : v1::ProcessStatus::STATE_CONNECTED);
  }
  reply->set_processes_left_out(left_out);
}

}  // namespace ranktap::collector

// Levels and windows, and the answers to `ranktap status`, `start` and `stop`. The rest of Server.
#include <unistd.h>

#include <algorithm>
#include <set>

#include "collector/ingest/handshake.h"
#include "collector/ingest/monotonic_clock.h"
#include "collector/ingest/server.h"

namespace ranktap::collector {
namespace {

// From the order to its instant: an agent's thread that is not busy hears of it within 50 ms.
constexpr uint64_t kLeadNs = 150'000'000;
// A reply stays far below a frame's limit; a process is some 300 bytes, its notes cut.
constexpr int kMostProcesses = 2000;
constexpr int kMostNotes = 4;
constexpr size_t kMostNoteBytes = 200;

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

v1::Level After(const v1::LevelChange& change) {
  return change.level_after() == v1::LEVEL_UNKNOWN ? v1::LEVEL_DORMANT : change.level_after();
}

void CutNotes(v1::ProcessStatus* status) {
  while (status->notes_size() > kMostNotes) status->mutable_notes()->RemoveLast();
  for (std::string& note : *status->mutable_notes()) {
    if (note.size() > kMostNoteBytes) note.resize(kMostNoteBytes);
  }
}

}  // namespace

v1::Level Server::LevelNow(const LevelPlan& plan) {
  const uint64_t now = RealtimeNs();
  const v1::LevelChange& change = plan.change;
  if (change.until_realtime_ns() != 0 && now >= change.until_realtime_ns()) return After(change);
  return now >= change.at_realtime_ns() ? change.level() : plan.before;
}

bool Server::HasMore(const LevelPlan& plan) {
  const uint64_t now = RealtimeNs();
  return now < plan.change.at_realtime_ns() || now < plan.change.until_realtime_ns();
}

const Server::LevelPlan* Server::PlanOf(const Session& session) const {
  auto found = session.run.empty() ? plans_.end() : plans_.find(session.run);
  if (found == plans_.end()) found = plans_.find("");
  return found == plans_.end() ? nullptr : &found->second;
}

bool Server::Tell(Session* session, Connection* connection, const v1::LevelChange& change) {
  session->window = change.window();
  return connection->Send(EncodeControl(proto::FrameType::kLevel, change.SerializeAsString()));
}

size_t Server::Order(const v1::LevelChange& change,
                     const std::function<bool(const Session&)>& wanted, const std::string& run) {
  const auto known = plans_.find(run);
  LevelPlan plan{known == plans_.end() ? options_.level : LevelNow(known->second), change};
  if (run.empty()) plans_.clear();
  plans_[run] = std::move(plan);
  size_t told = 0;
  std::vector<uint64_t> failed;
  for (auto& [id, session] : sessions_) {
    Connection* const connection = FindConnection(session->connection());
    if (connection == nullptr || !connection->welcomed || connection->closing) continue;
    if (!wanted(*session)) continue;
    if (Tell(session.get(), connection, change)) {
      ++told;
    } else {
      failed.push_back(connection->id());
    }
  }
  for (const uint64_t id : failed) CloseConnection(id);
  return told;
}

// Which run it is of decides which plan it hears of, where that came later than the welcome.
void Server::OnOpened(const OpenedReply& reply) {
  Session* const session = FindSession(reply.session);
  if (session == nullptr) return;
  session->run = reply.run;
  const auto plan = plans_.find(reply.run);
  Connection* const connection = FindConnection(session->connection());
  if (plan == plans_.end() || connection == nullptr || !connection->welcomed) return;
  if (!Tell(session, connection, plan->second.change)) CloseConnection(connection->id());
}

bool Server::MayControl(const PeerCredentials& caller, const Session& session) const {
  return caller.uid == 0 || caller.uid == options_.owner || caller.uid == session.peer().uid;
}

bool Server::OnControl(Connection* connection, const proto::FrameView& frame) {
  v1::ControlRequest request;
  if (connection->peer().is_spool ||
      !request.ParseFromArray(frame.payload.data(), static_cast<int>(frame.payload.size()))) {
    return false;
  }
  const v1::ControlReply reply = Answer(request, connection->peer());
  const auto bytes = EncodeControl(proto::FrameType::kReport, reply.SerializeAsString());
  connection->closing = true;  // one request, one reply
  if (connection->SendReply(bytes)) FlushOrClose(connection);
  return true;
}

void Server::Control(v1::ControlRequest::Verb verb) {
  Post([this, verb] {
    v1::ControlRequest request;
    request.set_verb(verb);
    v1::ControlReply reply;
    (void)ChangeLevels(request, {.uid = options_.owner, .pid = ::getpid()}, &reply);
  });
}

v1::ControlReply Server::Answer(const v1::ControlRequest& request, const PeerCredentials& caller) {
  v1::ControlReply reply;
  reply.set_collector_version(options_.collector_version);
  reply.set_collector_pid(static_cast<uint32_t>(::getpid()));
  std::set<std::string> jobs;
  bool is_known = request.job().empty();
  for (const auto& [id, session] : sessions_) {
    if (!MayControl(caller, *session)) continue;
    jobs.insert(NameOf(*session));
    is_known = is_known || IsOfJob(*session, request.job());
  }
  if (!is_known) {
    std::string names;
    for (const std::string& job : jobs) names += (names.empty() ? "" : ", ") + job;
    reply.set_problem("no process of '" + request.job() + "' is connected here" +
                      (names.empty() ? "; none is at all" : "; there are: " + names));
    return reply;
  }
  if (request.verb() != v1::ControlRequest::VERB_STATUS && !ChangeLevels(request, caller, &reply)) {
    return reply;
  }
  DescribeSessions(request, caller, &reply);
  for (const auto& [reason, count] : log_.counts()) {
    v1::Refusal* const refusal = reply.add_refused();
    refusal->set_reason(reason);
    refusal->set_count(count);
  }
  return reply;
}

bool Server::ChangeLevels(const v1::ControlRequest& request, const PeerCredentials& caller,
                          v1::ControlReply* reply) {
  const bool is_start = request.verb() == v1::ControlRequest::VERB_START;
  if (!is_start && request.verb() != v1::ControlRequest::VERB_STOP) {
    reply->set_problem("this collector does not know the request; use a newer one");
    return false;
  }
  const v1::Level wanted =
      request.level() == v1::LEVEL_UNKNOWN ? options_.start_level : request.level();
  if (is_start && (wanted < v1::LEVEL_RANGES || wanted > v1::LEVEL_FULL)) {
    reply->set_problem("no level to start at: it is ranges, kernels or full");
    return false;
  }
  const uint64_t now = RealtimeNs();
  v1::LevelChange change;
  change.set_level(is_start ? wanted : v1::LEVEL_DORMANT);
  change.set_window(is_start ? ++window_ : window_);
  change.set_at_realtime_ns(std::max(request.at_realtime_ns(), now + kLeadNs));
  if (is_start && request.duration_ns() != 0) {
    const uint64_t at = change.at_realtime_ns();
    change.set_until_realtime_ns(
        request.duration_ns() < UINT64_MAX - at ? at + request.duration_ns() : UINT64_MAX);
  }
  change.set_reason("window " + std::to_string(change.window()) +
                    (is_start ? ": ranktap start" : ": ranktap stop"));
  const auto is_wanted = [&](const Session& session) {
    return MayControl(caller, session) && IsOfJob(session, request.job());
  };
  const bool all = request.job().empty() && (caller.uid == 0 || caller.uid == options_.owner);
  std::set<std::string> runs;
  if (all) runs.insert("");
  for (const auto& [id, session] : sessions_) {
    if (!all && is_wanted(*session)) runs.insert(session->run);
  }
  for (const std::string& run : runs) {
    Order(
        change,
        [&](const Session& session) { return is_wanted(session) && (all || session.run == run); },
        run);
  }
  reply->set_window(change.window());
  reply->set_level(change.level());
  reply->set_at_realtime_ns(change.at_realtime_ns());
  reply->set_until_realtime_ns(change.until_realtime_ns());
  return true;
}

void Server::DescribeSessions(const v1::ControlRequest& request, const PeerCredentials& caller,
                              v1::ControlReply* reply) const {
  uint64_t left_out = 0;
  for (const auto& [id, session] : sessions_) {
    if (!MayControl(caller, *session) || !IsOfJob(*session, request.job())) continue;
    if (session->peer().is_spool) continue;
    if (reply->processes_size() >= kMostProcesses) {
      ++left_out;
      continue;
    }
    v1::ProcessStatus* const status = reply->add_processes();
    session->ledger().Describe(status);
    CutNotes(status);
    status->set_session(id);
    status->set_run(session->run);
    status->set_pid(static_cast<uint32_t>(session->peer().pid));
    status->set_uid(session->peer().uid);
    status->set_window(session->window);
    status->set_state(session->is_dead || session->is_closing ? v1::ProcessStatus::STATE_ENDING
                      : session->connection() == 0            ? v1::ProcessStatus::STATE_AWAY
                                                              : v1::ProcessStatus::STATE_CONNECTED);
  }
  reply->set_processes_left_out(left_out);
}

}  // namespace ranktap::collector

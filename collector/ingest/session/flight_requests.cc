#include "collector/ingest/session/flight_requests.h"

#include <algorithm>
#include <utility>

#include "collector/ingest/net/handshake.h"
#include "ranktap/v1/flight.pb.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kPatienceNs = 5'000'000'000;
// Of a process; an agent sends no more than this of one backend.
constexpr size_t kMostBytes = 16u << 20, kMostBackends = 4, kMostText = 200;

}  // namespace

void FlightRequests::Ask(const std::unordered_map<SessionId, std::unique_ptr<Session>>& sessions,
                         const std::vector<pid_t>& processes, Done done) {
  End("another request came");
  done_ = std::move(done);
  v1::FlightRequest request;
  request.set_number(++number_);
  const auto frame = EncodeControl(proto::FrameType::kFlight, request.SerializeAsString());
  for (const auto& [id, session] : sessions) {
    const pid_t pid = session->peer().pid;
    if (session->peer().is_spool || std::ranges::find(processes, pid) == processes.end()) continue;
    Connection* const connection = connections_->Find(session->connection());
    if (connection != nullptr && connection->welcomed && !connection->closing)
      awaited_[id].record.pid = pid;
  }
  // Sent to all that are known to be awaited: a connection may break, and be settled, here.
  std::vector<uint64_t> asked;
  for (const auto& [id, awaited] : awaited_) asked.push_back(sessions.at(id)->connection());
  loop_->After(kPatienceNs, [this, number = number_] {
    if (number == number_) End("no answer within 5 s");
  });
  for (const uint64_t id : asked) {
    Connection* const connection = connections_->Find(id);
    if (connection == nullptr) continue;
    if (!connection->Send(frame)) {
      connections_->Close(id);
    } else if (connection->wants_to_write()) {
      connections_->Flush(connection);
    }
  }
  Settle(0);
}

void FlightRequests::Take(SessionId session, std::span<const std::byte> payload) {
  v1::FlightPart part;
  const auto found = awaited_.find(session);
  if (found == awaited_.end() || found->second.is_settled ||
      !part.ParseFromArray(payload.data(), static_cast<int>(payload.size())) ||
      part.number() != number_) {
    return;
  }
  Awaited& awaited = found->second;
  FlightRecord& record = awaited.record;
  if (!part.problem().empty()) record.problem = part.problem().substr(0, kMostText);
  if (!part.text().empty()) {
    awaited.bytes += part.text().size();
    const bool is_new = !record.dumps.contains(part.backend());
    if (awaited.bytes > kMostBytes || (is_new && record.dumps.size() == kMostBackends)) {
      record.dumps.clear();
      record.problem = "it has sent more than 16 MiB";
      return Settle(session);
    }
    record.dumps[part.backend()] += part.text();
  }
  if (part.is_last()) Settle(session);
}

// Nobody is session 0.
void FlightRequests::Settle(SessionId session) {
  const auto found = awaited_.find(session);
  if (found != awaited_.end()) found->second.is_settled = true;
  if (std::ranges::all_of(awaited_, [](const auto& each) { return each.second.is_settled; })) {
    End("");
  }
}

void FlightRequests::End(const char* why) {
  if (!done_) return;
  std::vector<FlightRecord> records;
  for (auto& [session, awaited] : awaited_) {
    if (!awaited.is_settled) awaited.record.problem = why;
    records.push_back(std::move(awaited.record));
  }
  awaited_.clear();
  std::exchange(done_, nullptr)(std::move(records));
}

}  // namespace ranktap::collector

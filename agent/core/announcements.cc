// A stack that many push and the sender empties.
// Runs on: see announcements.h.  May not: run in a hook in steady state.
#include "agent/core/announcements.h"

#include <atomic>
#include <cstring>
#include <optional>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "agent/core/agent_state.h"
#include "agent/core/arena.h"
#include "agent/core/log.h"
#include "proto/encode_entry.h"
#include "proto/frame.h"
#include "proto/redact.h"

namespace ranktap::agent {
namespace {

constinit std::atomic<Announcement*> g_newest{nullptr};

}  // namespace

void Announce(proto::FrameType type, bool keep, std::string payload) {
  auto* added = new Announcement{.type = type, .keep = keep, .payload = std::move(payload)};
  added->next = g_newest.load(std::memory_order_relaxed);
  while (!g_newest.compare_exchange_weak(added->next, added, std::memory_order_release,
                                         std::memory_order_relaxed)) {
  }
}

void AppendRank(const RankIdentity& identity, std::string& bytes) {
  protozero::pbf_writer hello(bytes);
  protozero::pbf_writer rank(hello, 9);
  const auto add = [&rank](uint32_t field, const std::optional<uint32_t>& value) {
    if (value) rank.add_uint32(field, *value);
  };
  add(1, identity.rank);
  add(2, identity.local_rank);
  add(3, identity.world_size);
  add(4, identity.local_world_size);
  add(5, identity.node_rank);
  add(6, identity.restart);
  rank.add_string(7, identity.job);
  rank.add_string(8, identity.origin);
}

void AnnounceRank(const RankIdentity& rank) {
  std::string bytes;
  AppendRank(rank, bytes);
  proto::LastWords& words = g_agent.segment->last_words;
  words.rank_bytes.store(0);
  if (bytes.size() <= sizeof(words.rank)) {
    std::memcpy(words.rank, bytes.data(), bytes.size());
    words.rank_bytes.store(static_cast<uint32_t>(bytes.size()));
  }
  Announce(proto::FrameType::kAmend, true, std::move(bytes));
}

void AnnounceLevel(proto::Level level) {
  std::string bytes;
  protozero::pbf_writer(bytes).add_enum(8, static_cast<int32_t>(level));
  Announce(proto::FrameType::kAmend, true, std::move(bytes));
}

void AnnounceNote(std::string_view note) {
  std::string bytes, told(note);
  proto::RedactText(told);
  protozero::pbf_writer(bytes).add_bytes(14, told);
  Announce(proto::FrameType::kAmend, true, std::move(bytes));
}

void LogAndAnnounce(std::string_view note) {
  Log(note);
  AnnounceNote(note);
}

void AnnounceGap(const GapFields& fields) {
  std::string bytes;
  protozero::pbf_writer gap(bytes);
  gap.add_enum(1, static_cast<int32_t>(fields.reason));
  gap.add_bytes(2, fields.source.data(), fields.source.size());
  gap.add_uint64(3, fields.start_ticks);
  gap.add_uint64(4, fields.end_ticks);
  gap.add_bytes(5, fields.detail.data(), fields.detail.size());
  Announce(proto::FrameType::kGap, true, std::move(bytes));
}

void AnnounceFlight(const FlightPart& fields) {
  std::string bytes;
  protozero::pbf_writer part(bytes);
  part.add_uint64(1, fields.number);
  part.add_bytes(2, fields.backend.data(), fields.backend.size());
  part.add_bytes(3, fields.text.data(), fields.text.size());
  part.add_bool(4, fields.is_last);
  part.add_bytes(5, fields.problem.data(), fields.problem.size());
  Announce(proto::FrameType::kFlight, false, std::move(bytes));
}

void AppendEntry(const proto::ArenaEntry& entry, std::string& dictionary) {
  protozero::pbf_writer writer(dictionary);
  (void)proto::EncodeEntry(static_cast<proto::EntryKind>(entry.kind), entry.id,
                           Arena::ContentOf(entry), writer);
}

Announcement* TakeAnnouncements() {
  Announcement* newest = g_newest.exchange(nullptr, std::memory_order_acquire);
  Announcement* oldest = nullptr;
  while (newest != nullptr) {
    Announcement* const older = std::exchange(newest->next, oldest);
    oldest = std::exchange(newest, older);
  }
  return oldest;
}

}  // namespace ranktap::agent

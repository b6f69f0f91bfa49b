// The sender says these beside events: identity amendments, clock readings, gaps. Any thread of
// ours, or a hook that runs once in a while, posts; the sender takes. A later collector must hear
// identity and gaps too: they are kept, and said again after a reconnect. Runs on: the starting
// thread, the drain thread, rare hooks. May not: be called from a hook in steady state (it
// allocates).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/core/rank_identity.h"
#include "proto/frame.h"
#include "proto/modes.h"
#include "proto/ring.h"

namespace ranktap::agent {

struct Announcement {
  proto::FrameType type;
  bool keep;  // say it again to a later collector
  std::string payload;
  Announcement* next = nullptr;
};

// Lock-free; the newest is not seen before everything in it is.
void Announce(proto::FrameType type, bool keep, std::string payload);

// v1.Hello with one thing in it: what has changed, or what this process lacks and why. A rank goes
// into the segment's last words as well: a short process ends before a frame with it is sent. One
// thread at a time.
void AnnounceRank(const RankIdentity& rank);
void AnnounceLevel(proto::Level level);
void AnnounceNote(std::string_view note);
// The same, and a line in our log.
void LogAndAnnounce(std::string_view note);

struct GapFields {
  proto::GapReason reason;
  std::string_view source;  // empty: all
  uint64_t start_ticks;
  uint64_t end_ticks;  // 0: open
  std::string_view detail;
};
void AnnounceGap(const GapFields& gap);

// v1.FlightPart, to the collector that has asked for it, and to no later one.
struct FlightPart {
  uint64_t number = 0;
  std::string_view backend, text, problem;
  bool is_last = false;
};
void AnnounceFlight(const FlightPart& part);

// Appends an arena entry to the payload of a dictionary frame, for entries that no event refers to.
void AppendEntry(const proto::ArenaEntry& entry, std::string& dictionary);

// Appends the `rank` field of a v1.Hello.
void AppendRank(const RankIdentity& rank, std::string& hello);

// Everything announced since the last call, a chain from the oldest on, which the caller deletes.
// Sender only.
Announcement* TakeAnnouncements();

}  // namespace ranktap::agent

#include "collector/ingest/net/frame_turns.h"

namespace ranktap::collector {
namespace {

// What a turn may bring: a frame of some 20,000 events.
constexpr uint64_t kBytesOfTurn = 128u << 10;

}  // namespace

bool FrameTurns::Turns::is_full() const {
  return half_bytes + given * kBytesOfTurn >= kMostHalfBytes;
}

bool FrameTurns::MustWait(uid_t user) const {
  const auto found = turns_.find(user);
  return found != turns_.end() && found->second.is_full();
}

void FrameTurns::Update(uid_t user, uint64_t bytes, uint64_t before, bool took_turn) {
  Turns& turns = turns_[user];
  turns.half_bytes += bytes - before;
  if (took_turn) --turns.given;
  ++turns.updates;
  GiveTurns(&turns, false);
  const bool is_idle = turns.half_bytes == 0 && turns.given == 0 && turns.waiting.empty();
  if (is_idle && !turns.has_timer) turns_.erase(user);
}

void FrameTurns::GiveTurns(Turns* turns, bool to_all) {
  while (!turns->waiting.empty() && (to_all || !turns->is_full())) {
    const uint64_t id = turns->waiting.front();
    turns->waiting.pop_front();
    if (begin_(id)) ++turns->given;
  }
}

void FrameTurns::Wait(uid_t user, uint64_t id) {
  Turns& turns = turns_[user];
  turns.waiting.push_back(id);
  if (!turns.has_timer) StartTimer(user, &turns);
}

void FrameTurns::StartTimer(uid_t user, Turns* turns) {
  turns->has_timer = true;
  loop_->After(kPatienceNs, [this, user, updates = turns->updates] {
    Turns& now = turns_[user];
    now.has_timer = false;
    if (now.updates == updates) GiveTurns(&now, true);
    if (!now.waiting.empty()) StartTimer(user, &now);
  });
}

}  // namespace ranktap::collector

// What the writers counted, as accounts that add up to what was found in their rings.
#include <algorithm>

#include "collector/ingest/recovery/ring_recovery.h"

namespace ranktap::collector {

proto::LossCounts RingRecovery::LossesOf(uint32_t writer) const {
  const auto slot = slots_.find(writer);
  if (slot != slots_.end()) return slot->second.lost;
  const auto known = state_.writers().find(writer);
  return known == state_.writers().end() ? proto::LossCounts{} : known->second.lost;
}

// The program wrote over where these writers' counters were. How many events they had beyond those
// that are stored nobody knows: one stands for them.
void RingRecovery::AddUnreadable(v1::Accounts* accounts) const {
  for (const auto& [id, writer] : state_.writers()) {
    const auto told = state_.accounts().find(id);
    const bool has_ended = told != state_.accounts().end() && told->second.ended();
    if (slots_.contains(id) || has_ended) continue;
    proto::LossCounts lost = writer.lost;
    ++lost[static_cast<size_t>(proto::Loss::kDamaged)];
    v1::Account& account = *accounts->add_accounts();
    account.set_writer(id);
    account.set_produced(writer.next_event + proto::Total(lost));
    account.set_committed(writer.next_event);
    for (const uint64_t count : lost) account.add_lost(count);
    account.set_ended(true);
  }
}

void RingRecovery::SendAccounts(bool process_is_dead) {
  v1::Accounts accounts;
  accounts.set_after_death(process_is_dead);
  for (const auto& [id, slot] : slots_) {
    proto::LossCounts lost = slot.lost;
    const uint64_t committed = state_.NextEvent(id), placed = committed + proto::Total(lost);
    uint64_t produced = slot.produced;
    // Death may have come between counting an event and committing it: one a writer. More, and the
    // rings were written over, or two processes wrote to them at once (CLONE_VM).
    if (process_is_dead && produced > placed) {
      const auto why = produced == placed + 1 ? proto::Loss::kDeath : proto::Loss::kDamaged;
      lost[static_cast<size_t>(why)] += produced - placed;
    }
    if (process_is_dead) produced = std::max(produced, placed);
    v1::Account& account = *accounts.add_accounts();
    account.set_writer(id);
    account.set_produced(produced);
    account.set_committed(committed);
    for (const uint64_t count : lost) account.add_lost(count);
    account.set_ended(process_is_dead || slot.ended);
  }
  if (process_is_dead) AddUnreadable(&accounts);
  if (accounts.accounts_size() == 0) return;
  const std::string bytes = accounts.SerializeAsString();
  take_({.type = proto::FrameType::kAccounts}, std::as_bytes(std::span(bytes)));
}

}  // namespace ranktap::collector

#include "collector/ingest/recovery/ring_accounts.h"

#include <algorithm>
#include <span>
#include <vector>

#include "ranktap/v1/dictionary.pb.h"

namespace ranktap::collector {
namespace {

template <typename Atomic>
auto Plain(const Atomic& value) {
  return value.load(std::memory_order_relaxed);
}

// A writer that lives counts between our two looks at its slot.
constexpr uint64_t kCountedMeanwhile = 1 << 20;

// Whether a writer can have counted so: what is lost was produced.
bool IsPlausible(uint64_t produced, const proto::LossCounts& lost) {
  return std::all_of(lost.begin(), lost.end(), [produced](uint64_t count) {
    return count <= kCountedMeanwhile || count - kCountedMeanwhile <= produced;
  });
}

}  // namespace

bool RingAccounts::Read(const Segment& segment, uint64_t offset, uint32_t count) {
  std::vector<proto::WriterSlot> slots(count);
  if (!segment.ReadAt(offset, std::as_writable_bytes(std::span(slots)))) return false;
  for (const proto::WriterSlot& slot : slots) {
    const uint32_t id = Plain(slot.id);
    if (id == 0 || id > kMaxEntryId || slots_.contains(id)) continue;
    Slot copy;
    copy.kind = static_cast<proto::WriterKind>(slot.kind);
    copy.thread = slot.thread;
    copy.ended = Plain(slot.state) == static_cast<uint32_t>(proto::WriterState::kEnded);
    copy.produced = Plain(slot.produced);
    for (size_t i = 0; i < proto::kLossCount; ++i) copy.lost[i] = Plain(slot.lost[i]);
    copy.open_since_ticks = Plain(slot.open_since_ticks);
    copy.open_api = Plain(slot.open_api);
    copy.open_correlation = Plain(slot.open_correlation);
    // The program wrote over the others: AddUnreadable ends their writers.
    if (IsPlausible(copy.produced, copy.lost)) slots_.emplace(id, copy);
  }
  return true;
}

uint64_t RingAccounts::MostProduced(uint32_t writer) const {
  const auto slot = slots_.find(writer);
  return slot == slots_.end() ? state_.NextEvent(writer) + proto::kMaxEventsPerFrame
                              : slot->second.produced;
}

proto::LossCounts RingAccounts::LossesOf(uint32_t writer) const {
  const auto slot = slots_.find(writer);
  if (slot != slots_.end()) return slot->second.lost;
  const auto known = state_.writers().find(writer);
  return known == state_.writers().end() ? proto::LossCounts{} : known->second.lost;
}

void RingAccounts::AppendNewWriters(std::string* dictionary) const {
  for (const auto& [id, slot] : slots_) {
    if (state_.entries().Contains(v1::Dictionary::kWritersFieldNumber, id)) continue;
    v1::Dictionary writers;
    v1::Writer& writer = *writers.add_writers();
    writer.set_id(id);
    writer.set_kind(static_cast<uint32_t>(slot.kind));
    writer.set_thread(slot.thread);
    writers.AppendToString(dictionary);
  }
}

// The program wrote over where these writers' counters were. How many events they had beyond those
// that are stored nobody knows: one stands for them.
void RingAccounts::AddUnreadable(v1::Accounts* accounts) const {
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

std::string RingAccounts::Accounts(bool process_is_dead) const {
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
  if (accounts.accounts_size() == 0) return {};
  return accounts.SerializeAsString();
}

std::string RingAccounts::OpenCalls(const std::function<uint32_t(proto::ArenaRef)>& id_of) const {
  v1::OpenCalls calls;
  for (const auto& [id, slot] : slots_) {
    if (slot.open_api == 0 || slot.ended) continue;
    v1::OpenCall& call = *calls.add_calls();
    call.set_writer(id);
    call.set_since_ticks(slot.open_since_ticks);
    call.set_api(id_of(slot.open_api));
    call.set_correlation(slot.open_correlation);
  }
  return calls.SerializeAsString();
}

}  // namespace ranktap::collector

#include "collector/ingest/session/open_blocks.h"

namespace ranktap::collector {
namespace {

constexpr uint64_t kFirstBlock = 1;  // of a session

}  // namespace

Session* OpenBlocks::FindOpen(const BlockName& block) const {
  Session* const session = find_(block.first);
  const bool is_open =
      session != nullptr && session->has_open_block() && session->block_number() == block.second;
  return is_open ? session : nullptr;
}

void OpenBlocks::CloseAtAge(const BlockName& block, int age) {
  loop_->After(kBlockAgeNs, [this, block, age] {
    Session* const session = FindOpen(block);
    if (session == nullptr) return;
    // The first makes the file, for which whoever has started a program looks.
    const bool may_wait = session->open_bytes() < kSmallBlockBytes && block.second > kFirstBlock;
    if (!may_wait || age >= small_block_ages_) return Close(session);
    CloseAtAge(block, age + 1);
  });
}

void OpenBlocks::Grew(Session* session, uint64_t number, uint64_t bytes) {
  if (session->block_number() != number) {
    const BlockName block(session->id(), session->block_number());
    oldest_first_.push_back(block);
    CloseAtAge(block, 1);
  }
  bytes_ += session->open_bytes() - bytes;
  if (session->block_is_full()) Close(session);
  while (bytes_ > most_bytes_ && !oldest_first_.empty()) {
    Session* const oldest = FindOpen(oldest_first_.front());
    oldest_first_.pop_front();
    if (oldest != nullptr) Close(oldest);
  }
  // Most blocks are closed by age; their entries here go when they come to the front.
  while (!oldest_first_.empty() && FindOpen(oldest_first_.front()) == nullptr) {
    oldest_first_.pop_front();
  }
}

void OpenBlocks::Close(Session* session) {
  if (!session->has_open_block()) return;
  bytes_ -= session->open_bytes();
  store_->Store(session->id(), session->connection(), session->connection_frames(),
                session->TakeBlock());
}

void OpenBlocks::Drop(Session* session) {
  if (session->has_open_block()) bytes_ -= session->open_bytes();
  (void)session->TakeBlock();
}

}  // namespace ranktap::collector

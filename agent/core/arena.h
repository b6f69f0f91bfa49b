// Names and other things that events refer to by number: content-addressed, append-only, in the
// shared segment. An entry is complete before its ref is handed out, so it is there before the
// first event that uses it, for the sender and for a drain after death alike.
// Runs on: any thread.  May not: allocate, lock, log; make a system call, but where the names have
// outrun the sender, which allocates ahead.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <string_view>

#include "agent/core/segment.h"
#include "proto/ring.h"

namespace ranktap::agent {

class Arena {
 public:
  // `table` has kTableSlots zeroed words and lives as long as the arena.
  void Attach(Segment& segment, std::atomic<uint64_t>* table);

  // The entry with this content, made if it is new. 0: the arena or the table is full, or the
  // content is longer than kMaxContentBytes; the caller decides what an event is worth without it.
  proto::ArenaRef Intern(proto::EntryKind kind, std::span<const std::byte> content);

  proto::ArenaRef InternText(std::string_view text) {
    return Intern(proto::EntryKind::kString, std::as_bytes(std::span(text)));
  }

  // A content's bytes are followed by a NUL. nullptr when `ref` is 0 or no entry of this arena.
  const proto::ArenaEntry* Find(proto::ArenaRef ref) const;

  static std::span<const std::byte> ContentOf(const proto::ArenaEntry& entry) {
    return {reinterpret_cast<const std::byte*>(&entry + 1), entry.bytes};
  }

  // 128 Ki entries of 8 bytes. Half full at 64 Ki names: beyond that probes grow long, and the
  // arena's 8 MiB are as good as used up.
  static constexpr uint32_t kTableSlots = 1u << 17;
  static constexpr uint32_t kMaxContentBytes = 64u << 10;

 private:
  static constexpr uint32_t kMaxProbes = 64;

  uint64_t RoomFor(uint64_t bytes) const;
  bool GrowKeepingErrno();
  proto::ArenaRef Append(proto::EntryKind kind, std::span<const std::byte> content, uint32_t hash);

  Segment* segment_ = nullptr;
  std::atomic<uint64_t>* table_ = nullptr;  // hash << 32 | ref
};

}  // namespace ranktap::agent

// A reader needs this to read a trace from any point on: who the process is, its dictionary, where
// each writer stands. Collected from the frames as they are stored; what a checkpoint is made of.
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collector/file/checkpoint_parts.h"
#include "collector/file/entry_set.h"
#include "collector/file/lasting_events.h"
#include "collector/file/packed_text.h"
#include "collector/file/trace_bounds.h"
#include "proto/frame.h"
#include "proto/ring.h"
#include "ranktap/v1/trace.pb.h"

namespace ranktap::collector {

struct WriterState {
  uint64_t next_event = 0;
  proto::LossCounts lost{};
};

class TraceState {
 public:
  // Adds what an amendment says to `hello`: lists by key, up to kMaxHelloItems (device id, library
  // name, note), the rest as protobuf merges. The session is never changed.
  static void Amend(const v1::Hello& amendment, v1::Hello* hello);

  v1::Hello& hello() { return hello_; }
  const v1::Hello& hello() const { return hello_; }
  const std::map<uint32_t, WriterState>& writers() const { return writers_; }
  const std::map<uint32_t, v1::Account>& accounts() const { return accounts_; }
  // All entries, serialised: put together anew for each call.
  std::string dictionary() const { return dictionary_.Whole(); }
  // About what all of it takes of memory.
  uint64_t MemoryBytes() const;
  const EntrySet& entries() const { return entries_; }
  uint64_t NextEvent(uint32_t writer) const;
  bool said_goodbye() const { return goodbye_; }
  const v1::Goodbye& goodbye() const { return last_words_; }

  // From now on checkpoints say that earlier files were dropped, and hold what lasts of them.
  void KeepLasting();

  // Becomes what a checkpoint says. False when it does not parse; then nothing has changed.
  [[nodiscard]] bool Restore(std::span<const std::byte> checkpoint);
  // Takes note of a complete frame that is about to be stored. False when its payload is not what
  // its type says; nothing is noted then.
  [[nodiscard]] bool Note(const proto::FrameView& frame);
  // The bytes of new entries of a serialised v1.Dictionary, which become known.
  [[nodiscard]] bool TakeNewEntries(std::span<const std::byte> dictionary, std::string* fresh);

  // A serialised v1.Checkpoint. `extra` adds what the caller knows: collector, incarnation, ending,
  // and positions that differ from what has been noted.
  std::string EncodeCheckpoint(v1::Checkpoint extra) const;
  // At least what EncodeCheckpoint({}) gives, and little more.
  uint64_t CheckpointBytes() const;

 private:
  void ForgetToldAgain();
  [[nodiscard]] bool NoteAccounts(const v1::Accounts& accounts);
  [[nodiscard]] bool NoteClock(std::span<const std::byte> payload);

  v1::Hello hello_;
  PackedText dictionary_;
  EntrySet entries_;
  std::map<uint32_t, WriterState> writers_;
  std::map<uint32_t, v1::Account> accounts_;
  std::deque<v1::ClockReading> clocks_;
  bool goodbye_ = false;
  v1::Goodbye last_words_;
  std::optional<LastingEvents> lasting_;
  size_t retained_bytes_ = 0;  // of the dictionary, when entries were forgotten last
};

}  // namespace ranktap::collector

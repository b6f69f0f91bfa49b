// The names that the collector has been told: gives events their wire ids and collects the
// definitions that must go out before them.
// Runs on: the sender thread.  May not: be used from two threads.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "agent/core/arena.h"
#include "proto/encode.h"

namespace ranktap::agent {

class Dictionary {
 public:
  Dictionary(Segment& segment, const Arena& arena) : segment_(segment), arena_(arena) {}

  // proto::EntryIds.
  uint32_t IdOf(proto::EntryKind kind, proto::ArenaRef ref) {
    const Told& told = recent_[static_cast<size_t>(kind)][ref % kRecent];
    return told.ref == ref ? told.id : Tell(kind, ref);
  }
  uint32_t IdOfText(std::span<const std::byte> text);

  // The messages that must precede the events encoded since the last call: v1.Dictionary messages,
  // each small enough for a frame.
  std::vector<std::string> TakeDefinitions() { return std::exchange(definitions_, {}); }

  // A new connection: nothing has been told.
  void Forget();
  // Nothing of the kinds that proto::kToldAgainMessage is of.
  void TellAgain();

 private:
  // By ref, for the names that come again and again; {0, 0} is the right answer for no name.
  struct Told {
    proto::ArenaRef ref = 0;
    uint32_t id = 0;
  };
  static constexpr size_t kRecent = 1024;

  uint32_t Tell(proto::EntryKind kind, proto::ArenaRef ref);
  bool TellOnce(proto::EntryKind kind, uint32_t id);
  bool Define(proto::EntryKind kind, uint32_t id, std::span<const std::byte> content);

  Segment& segment_;
  const Arena& arena_;
  std::array<std::array<Told, kRecent>, proto::kEntryKinds> recent_{};
  std::array<std::vector<bool>, proto::kEntryKinds> told_;  // by kind and id
  std::unordered_map<std::string, uint32_t> inline_texts_;
  std::vector<std::string> definitions_;
};

}  // namespace ranktap::agent

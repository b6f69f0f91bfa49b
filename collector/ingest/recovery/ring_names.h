// The names of a segment: a copy of its arena, whose entries the events refer to by their place.
// Names that no frame has carried yet become dictionary entries; so do texts that lie in the events
// themselves. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collector/file/trace_state.h"
#include "collector/ingest/recovery/segment.h"
#include "proto/events.h"
#include "proto/ring.h"

namespace ranktap::collector {

class RingNames {
 public:
  // `state`: what has been stored so far. It outlives this.
  explicit RingNames(const TraceState& state) : state_(state) {}

  // Copies the arena. `next_string_id`: as the segment's header says. False: the segment ends
  // before.
  [[nodiscard]] bool Read(const Segment& segment, uint64_t offset, uint64_t bytes,
                          uint32_t next_string_id);
  // Calls `take` with each entry that no frame has carried, serialised as a v1.Dictionary; but for
  // kinds that an agent tells again (proto::kToldAgain), which come where an event names them: with
  // --keep nearly all that the process ever named would be among these.
  void ForEachNewEntry(const std::function<void(const std::string&)>& take);

  // For proto::EventEncoder: arena references and texts -> dictionary ids.
  uint32_t IdOf(proto::EntryKind kind, proto::ArenaRef ref);
  uint32_t IdOfText(std::span<const std::byte> text);
  // Serialised v1.Dictionary messages of what was named since the last call.
  std::vector<std::string> TakeFresh() {
    fresh_ids_ = {};
    return std::exchange(fresh_, {});
  }

 private:
  using Texts = std::map<std::string, uint32_t, std::less<>>;
  Texts& KnownTexts();
  [[nodiscard]] bool Define(proto::EntryKind kind, uint32_t id, std::span<const std::byte> content);

  const TraceState& state_;
  std::vector<std::byte> arena_;
  uint32_t next_string_id_ = 1;
  Texts texts_;  // what is stored or was defined here, by content
  bool texts_known_ = false;
  std::vector<std::string> fresh_;
  EntrySet fresh_ids_;
  std::optional<size_t> room_;  // for names in the file
};

}  // namespace ranktap::collector

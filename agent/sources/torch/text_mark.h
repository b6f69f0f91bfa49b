// A mark with a text of its own, as the collector's MarkedLines reads it.
// Runs on: threads of the program that are ours to emit on.  May not: be used where allocating is
// forbidden; it makes a copy of the text.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "agent/core/host_clock.h"
#include "agent/core/writer.h"
#include "proto/events.h"

namespace ranktap::agent {

// Most bytes of the text that are kept: an event counts its bytes in 16 bits. It also says how many
// are missing.
inline constexpr size_t kMostTextMarkBytes = 60'000;

inline void EmitTextMark(ThreadState& thread, proto::ArenaRef domain, proto::ArenaRef mark,
                         std::string_view text) {
  const size_t bytes = std::min(text.size(), kMostTextMarkBytes);
  std::string blob(16 + ((bytes + 7) & ~size_t{7}), '\0');
  const uint64_t head[2] = {proto::kBytesSchema, bytes};
  std::memcpy(blob.data(), head, sizeof(head));
  std::memcpy(blob.data() + sizeof(head), text.data(), bytes);
  const proto::MarkEvent event{
      .time_ticks = NowTicks(),
      .nvtx = {.domain = domain,
               .name = mark,
               .payload_type = proto::kNvtxSchemaPayload,
               .payload_dropped = static_cast<uint32_t>(text.size() - bytes)}};
  thread.EmitWith(event, {}, std::as_bytes(std::span(blob)));
}

}  // namespace ranktap::agent

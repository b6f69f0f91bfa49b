// NVTX's names: domains, registered strings, and the names of ranges.
//
// The handles that we give out are ArenaRefs in a pointer's clothes: the program passes them back,
// and no lookup is needed. kNoName stands for a name that found no room.
// Runs on: user threads.  May not: allocate, lock, log, make a system call.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <string_view>

#include "agent/core/agent_state.h"
#include "agent/core/arena.h"
#include "agent/core/writer.h"
#include "proto/events.h"
#include "proto/ring.h"

namespace ranktap::agent {

// No entry has this ref: the arena's first entry is behind it.
inline constexpr proto::ArenaRef kNoName = 1;
// Longer names are cut: one range must not fill the arena.
inline constexpr size_t kMaxNameBytes = 4096;

template <typename Handle>
Handle ToHandle(proto::ArenaRef ref) {
  return reinterpret_cast<Handle>(static_cast<uintptr_t>(ref));
}
template <typename Handle>
proto::ArenaRef FromHandle(Handle handle) {
  return static_cast<proto::ArenaRef>(reinterpret_cast<uintptr_t>(handle));
}

// The name that an event carries: interned, or as text where the arena is full.
struct EventName {
  proto::ArenaRef ref = 0;
  std::string_view inline_text{};
};

// The slow path: by content.
EventName InternName(ThreadState& thread, const char* text);

inline EventName NameOfText(ThreadState& thread, const char* text) {
  const proto::ArenaRef known = thread.names.Find(text);
  return known != 0 ? EventName{.ref = known} : InternName(thread, text);
}
// As NameOfText, for a text that may be an operator's (proto::kOperatorPayload): then `attributes`
// has its numbers, and only its name is interned.
EventName NameOfPushedText(ThreadState& thread, const char* text,
                           proto::NvtxAttributes& attributes);
EventName NameOfWideText(const wchar_t* text);
inline EventName NameOf(ThreadState& thread, const nvtxEventAttributes_t& attributes) {
  switch (attributes.messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return NameOfText(thread, attributes.message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
      return NameOfWideText(attributes.message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return {.ref = FromHandle(attributes.message.registered)};
    default:
      return {};
  }
}

// Interned for good; kNoName when there is no room.
proto::ArenaRef RegisterText(proto::EntryKind kind, const char* text);
proto::ArenaRef RegisterWideText(proto::EntryKind kind, const wchar_t* text);

}  // namespace ranktap::agent

// NVTX's names: domains, registered strings, and the names of ranges.
//
// The handles that we give out are ArenaRefs in a pointer's clothes: the program passes them back,
// and no lookup is needed. kNoName stands for a name that found no room.
// Runs on: user threads.  May not: allocate, lock, log, make a system call.
#pragma once

#include <nvtx3/nvToolsExt.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <cstdint>
#include <cstring>
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

// strcmp, but here: libc's is a call through two tables, a fifth of what a range costs. Like libc's
// it reads up to 15 bytes behind an end, and never over the end of a page; a sanitizer would
// complain.
inline bool IsSameText(const char* known, const char* text) {
#if defined(__SSE2__) && !defined(RANKTAP_UNDER_SANITIZER)
  constexpr uintptr_t kPage = 4096, kBlock = 16;
  const auto ends_in_page = [](const char* block) {
    return reinterpret_cast<uintptr_t>(block) % kPage <= kPage - kBlock;
  };
  for (; ends_in_page(known) && ends_in_page(text); known += kBlock, text += kBlock) {
    const __m128i left = _mm_loadu_si128(reinterpret_cast<const __m128i*>(known));
    const __m128i right = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
    const auto differing =
        static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(left, right))) ^ 0xffff;
    const auto ends =
        static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(left, _mm_setzero_si128())));
    // Up to the first end, with it.
    if (ends != 0) return (differing & (ends ^ (ends - 1))) == 0;
    if (differing != 0) return false;
  }
#endif
  return std::strcmp(known, text) == 0;
}

// The name that this pointer stood for last, if its text is still the same; 0 otherwise.
inline proto::ArenaRef LastNameOf(ThreadState& thread, const char* text) {
  const ThreadState::NameCacheLine& line = thread.NameCacheFor(text);
  // Compared each time, since the memory may hold another name now.
  const bool is_same = line.pointer == text && text != nullptr && IsSameText(line.name, text);
  return is_same ? line.ref : 0;
}

inline EventName NameOfText(ThreadState& thread, const char* text) {
  const proto::ArenaRef last = LastNameOf(thread, text);
  return last != 0 ? EventName{.ref = last} : InternName(thread, text);
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

// The names that string pointers of a thread stood for last, so that a name which comes again is
// neither hashed nor looked up.
// Runs on: the thread that it belongs to, its signal handlers too.  May not: allocate, lock, log.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>

#include "proto/events.h"
#include "proto/ring.h"

namespace ranktap::agent {

// Whether the text is `known`, which has `size` bytes with its end; false also where the text may
// lie over the end of a page. No call of libc's strcmp, which goes through two tables, a fifth of
// what a range costs. It reads up to 15 bytes behind an end, as libc's does, and never over the end
// of a page; a sanitizer would complain.
inline bool IsSurelySameText([[maybe_unused]] const char* known, [[maybe_unused]] const char* text,
                             [[maybe_unused]] size_t size) {
#if defined(__SSE2__) && !defined(RANKTAP_UNDER_SANITIZER)
  constexpr size_t kPage = 4096, kBlock = 16;
  // Bits of the bytes that differ.
  const auto differ = [known, text](size_t at) {
    const __m128i left = _mm_loadu_si128(reinterpret_cast<const __m128i*>(known + at));
    const __m128i right = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + at));
    return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(left, right))) ^ 0xffff;
  };
  const auto room = [](const char* at) { return kPage - reinterpret_cast<uintptr_t>(at) % kPage; };
  if (room(text) < std::max(size, kBlock)) return false;
  if (size < kBlock) return room(known) >= kBlock && (differ(0) & ((1u << size) - 1)) == 0;
  for (size_t at = 0; at + kBlock < size; at += kBlock) {
    if (differ(at) != 0) return false;
  }
  return differ(size - kBlock) == 0;
#else
  return false;
#endif
}

class NameCache {
 public:
  // The name that this pointer stood for last, if its text is still the same: a program may reuse
  // the memory. 0 otherwise, and where only a call of libc's could tell.
  proto::ArenaRef FindQuickly(const char* text) const {
    const Line& line = lines_[IndexOf(text)];
    const bool is_same =
        line.pointer == text && text != nullptr && IsSurelySameText(line.name, text, line.size);
    return is_same ? line.ref : 0;
  }
  // The same where it may take a call.
  proto::ArenaRef Find(const char* text) const {
    if (const proto::ArenaRef found = FindQuickly(text)) return found;
    const Line& line = lines_[IndexOf(text)];
    const bool is_same =
        line.pointer == text && text != nullptr && std::strcmp(line.name, text) == 0;
    return is_same ? line.ref : 0;
  }

  // `entry` may be nullptr. A signal handler may use the same line meanwhile: it finds no pointer
  // in it, and the text is compared to what was written last.
  void Remember(const char* pointer, const proto::ArenaEntry* entry, proto::ArenaRef ref) {
    if (entry == nullptr) return;
    Line& line = lines_[IndexOf(pointer)];
    line.pointer = nullptr;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    line.name = reinterpret_cast<const char*>(entry + 1);
    line.ref = ref;
    line.size = entry->bytes + 1;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    line.pointer = pointer;
  }

 private:
  struct Line {
    const char* pointer;
    const char* name;  // in the arena, NUL-terminated
    proto::ArenaRef ref;
    uint32_t size;  // of the name, with its end
  };

  static size_t IndexOf(const char* pointer) {
    const auto bits = reinterpret_cast<uintptr_t>(pointer);
    return (bits >> 4 ^ bits >> 10) % kLines;
  }

  static constexpr size_t kLines = 64;
  std::array<Line, kLines> lines_{};
};

}  // namespace ranktap::agent

// Runs on: any thread of the agent or the collector.  May not: allocate.
#include "proto/varint.h"

#include <algorithm>

namespace ranktap::proto {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kPiece = kVarintsAtOnce, kWord = sizeof(uint64_t);

// Bit i is set where byte i of the piece is the last of a varint.
uint64_t EndsIn(const std::byte* piece) {
  uint64_t ends = 0;
  for (size_t i = 0; i < kPiece; i += kWord) {
    uint64_t word;
    std::memcpy(&word, piece + i, kWord);
    // The high bits of eight bytes, side by side.
    const uint64_t last = ~word >> 7 & 0x0101010101010101;
    ends |= (last * 0x0102040810204080 >> 56) << i;
  }
  return ends;
}

// What is left of four bytes when a varint ends after the first, the second, ...
constexpr uint32_t kOwnBits[] = {0, 0x7f, 0x7fff, 0x7fffff, 0x7fffffff};

}  // namespace

size_t ReadVarints(const std::byte** in, const std::byte* end, size_t most,
                   uint64_t (&values)[kVarintsAtOnce]) {
  const std::byte* at = *in;
  size_t count = 0;
  if (most < kPiece || end - at < static_cast<ptrdiff_t>(kPiece + sizeof(uint32_t))) {
    for (most = std::min(most, kPiece); count < most && at != end && at != nullptr; ++count) {
      at = ReadVarint(at, end, &values[count]);
    }
    *in = at;
    return count;
  }
  uint64_t ends = EndsIn(at);
  if (ends == ~uint64_t{0}) {
    for (; count < kPiece; ++count) values[count] = static_cast<uint8_t>(at[count]);
    *in = at + kPiece;
    return count;
  }
  size_t from = 0;
  for (; ends != 0; ends &= ends - 1) {
    const auto to = static_cast<size_t>(std::countr_zero(ends)) + 1;
    if (to - from <= sizeof(uint32_t)) [[likely]] {
      uint32_t word;
      std::memcpy(&word, at + from, sizeof(word));
      word &= kOwnBits[to - from];
      values[count++] =
          (word & 0x7f) | (word >> 1 & 0x3f80) | (word >> 2 & 0x1fc000) | (word >> 3 & 0xfe00000);
    } else if (ReadVarint(at + from, end, &values[count++]) == nullptr) {
      break;
    }
    from = to;
  }
  *in = ends == 0 && from != 0 ? at + from : nullptr;
  return count;
}

}  // namespace ranktap::proto

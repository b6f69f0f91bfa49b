// Base-128 varints and zigzag, as protobuf writes them. The column codec's inner loop: protozero
// checks its buffer at every byte, this checks once per column.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ranktap::proto {

inline constexpr size_t kMaxVarintBytes = 10;

constexpr uint64_t Zigzag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
constexpr int64_t Unzigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// Writes at most kMaxVarintBytes at `out`; returns the end.
inline std::byte* WriteVarint(std::byte* out, uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<std::byte>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<std::byte>(value);
  return out;
}

// Reads one varint from [in, end); returns the byte after it, or nullptr when it is cut off or
// longer than ten bytes.
inline const std::byte* ReadVarint(const std::byte* in, const std::byte* end, uint64_t* value) {
  if (in != end && static_cast<uint8_t>(*in) < 0x80) [[likely]] {
    *value = static_cast<uint8_t>(*in);
    return in + 1;
  }
  if (std::endian::native == std::endian::little && end - in >= 4) {
    // A branch for each length: neighbours in a column are as long as each other, and a guess that
    // is right does not wait for this value to find the next.
    uint32_t word;
    std::memcpy(&word, in, sizeof(word));
    const uint32_t two = (word & 0x7f) | (word >> 1 & 0x3f80);
    if ((word & 0x8000) == 0) {
      *value = two;
      return in + 2;
    }
    if ((word & 0x800000) == 0) {
      *value = two | (word >> 2 & 0x1fc000);
      return in + 3;
    }
  }
  uint64_t result = 0;
  for (unsigned shift = 0; shift < 64 && in != end; shift += 7) {
    const uint8_t byte = static_cast<uint8_t>(*in++);
    result |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      *value = result;
      return in;
    }
  }
  return nullptr;
}

// A column's varints are read in pieces of this many bytes, which end at most as many.
inline constexpr size_t kVarintsAtOnce = 64;

// Reads varints of [*in, end) that follow each other, at least one where there are any, at most
// `most` and kVarintsAtOnce; returns how many. `*in` becomes the byte after them, or nullptr when
// one is malformed.
//
// Where each of them ends is found for all of a piece at once. A loop that reads one after the
// other guesses each length, and of the times in a trace every third one is guessed wrong.
size_t ReadVarints(const std::byte** in, const std::byte* end, size_t most,
                   uint64_t (&values)[kVarintsAtOnce]);
// The same where the processor extracts no bits, or slowly.
size_t ReadVarintsByShifts(const std::byte** in, const std::byte* end, size_t most,
                           uint64_t (&values)[kVarintsAtOnce]);

}  // namespace ranktap::proto

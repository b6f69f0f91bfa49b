// Arguments of a slice as Perfetto's debug annotations: encoded TrackEvent.debug_annotations
// fields, ready to be copied into any number of events of any track.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

namespace ranktap::collector {

// Names of arguments that many events carry, interned in every track; the number is the iid.
enum class Note : uint8_t {
  kCorrelation = 1,
  kDevice,
  kContext,
  kStream,
  kGrid,
  kBlock,
  kCluster,
  kRegisters,
  kSharedMemory,
  kBlocksPerSm,
  kWarpsPerSm,
  kOccupancy,
  kPriority,
  kGraph,
  kGraphNode,
  kChannel,
  kBytes,
  kBandwidth,
  kFromDevice,
  kToDevice,
  kDomain,
  kCategory,
  kUnfinished,
  kStatus,
  kReason,
  kEvent,
  kExternalId,
  kSequence,
  kShapes,
  kTypes,
  kValues,
  kStack,
  kFlops,
  kCollective,
  kDtype,
  kInElements,
  kOutElements,
  kGroup,
  kGroupSize,
  kRecordFunction,
  kForwardThread,
  kOutputShapes,
  kOutputTypes,
  kLast = kOutputTypes,
};
static_assert(static_cast<int>(Note::kLast) < 128, "an iid is one byte");

std::string_view NameOf(Note note);

[[gnu::always_inline]] inline char* PutVarint(char* at, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = static_cast<char>(value | 0x80);
  *at = static_cast<char>(value);
  return at + 1;
}
// Where the number of bytes cannot be foretold: up to 28 bits without a branch on it. Writes 4
// bytes or more, of which only the varint's count.
[[gnu::always_inline]] inline char* PutAnyVarint(char* at, uint64_t value) {
  if (value >= uint64_t{1} << 28) [[unlikely]]
    return PutVarint(at, value);
  static_assert(std::endian::native == std::endian::little);
  static constexpr uint32_t kMoreFollow[] = {0, 0x80, 0x8080, 0x808080};
  auto bits = static_cast<uint32_t>(value);
  bits = (bits & 0x3fff) | (bits << 2 & 0x3fff0000);
  bits = (bits & 0x7f007f) | (bits << 1 & 0x7f007f00);
  const uint32_t more = (31 ^ static_cast<uint32_t>(std::countl_zero(bits | 1))) / 8;
  bits |= kMoreFollow[more];
  std::memcpy(at, &bits, sizeof(bits));
  return at + more + 1;
}
// `at` has room for 16 bytes.
[[gnu::always_inline]] inline char* PutNote(char* at, Note note, uint64_t value) {
  at[0] = 0x22;  // TrackEvent.debug_annotations
  at[2] = 0x08;  // DebugAnnotation.name_iid
  at[3] = static_cast<char>(note);
  at[4] = 0x18;  // DebugAnnotation.uint_value
  char* const end = PutAnyVarint(at + 5, value);
  at[1] = static_cast<char>(end - at - 2);
  return end;
}

class Annotations {
 public:
  const std::string& bytes() const { return bytes_; }
  void Clear() { bytes_.clear(); }

  template <typename Integer>
  requires std::is_unsigned_v<Integer>
  void Add(Note note, Integer value) {
    char room[16];
    bytes_.append(room, PutNote(room, note, value));
  }
  void Add(Note note, double value);
  void Add(Note note, std::string_view text);
  void Add(Note note, const uint32_t (&triple)[3]);
  // For any name.
  void Add(std::string_view name, uint64_t value);
  void Add(std::string_view name, int64_t value);
  void Add(std::string_view name, double value);
  void Add(std::string_view name, std::string_view text);

 private:
  std::string bytes_;
};

}  // namespace ranktap::collector

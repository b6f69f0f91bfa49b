// Arguments of a slice as Perfetto's debug annotations: encoded TrackEvent.debug_annotations
// fields, ready to be copied into any number of events of any track.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <protozero/varint.hpp>
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

// `at` has room for 10 bytes. The length of most values cannot be foretold: a loop over their bytes
// takes longer than all of them at once.
inline char* PutVarint(char* at, uint64_t value) {
  if (value >= 1u << 28) return at + protozero::add_varint_to_buffer(at, value);
  const auto v = static_cast<uint32_t>(value);
  const auto bytes = (static_cast<uint32_t>(std::bit_width(v | 1)) + 6) / 7;
  const uint32_t goes_on = 0x80808080u & ((1u << (8 * (bytes - 1))) - 1);
  const uint32_t spread =
      (v & 0x7f) | (v & 0x3f80) << 1 | (v & 0x1fc000) << 2 | (v & 0xfe00000) << 3 | goes_on;
  std::memcpy(at, &spread, sizeof(spread));
  return at + bytes;
}

// Appends correlation-like numbers: `at` has room for 16 bytes.
inline char* PutNote(char* at, Note note, uint64_t value) {
  at[0] = 0x22;  // TrackEvent.debug_annotations
  at[2] = 0x08;  // DebugAnnotation.name_iid
  at[3] = static_cast<char>(note);
  at[4] = 0x18;  // DebugAnnotation.uint_value
  char* const end = PutVarint(at + 5, value);
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

// Arguments of a slice as Perfetto's debug annotations: encoded TrackEvent.debug_annotations
// fields, ready to be copied into any number of events of any track.
#pragma once

#include <bit>
#include <cstddef>
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

// The bytes of a note of a number.
inline size_t NoteBytes(uint32_t value) {
  return 5 + (static_cast<size_t>(std::bit_width(value | 1)) + 6) / 7;
}
// Appends correlation-like numbers without a branch on the size: `at` has room for 16 bytes.
inline char* PutNote(char* at, Note note, uint64_t value) {
  at[0] = 0x22;  // TrackEvent.debug_annotations
  at[2] = 0x08;  // DebugAnnotation.name_iid
  at[3] = static_cast<char>(note);
  at[4] = 0x18;  // DebugAnnotation.uint_value
  const int bytes = protozero::add_varint_to_buffer(at + 5, value);
  at[1] = static_cast<char>(3 + bytes);
  return at + 5 + bytes;
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

#include "proto/python_layout.h"

#include <array>
#include <cstring>

namespace ranktap::proto {
namespace {

constexpr uint8_t kNoEntryFrames = 255;

constexpr PythonLayout kLayouts[] = {
    {.minor = 9,
     .interpreters = 32,
     .next_interpreter = 0,
     .threads = 8,
     .next_thread = 8,
     .pthread = 176,
     .native_thread = 0,
     .frame = 24,
     .frame_in_cframe = kDirect,
     .chunk = 0,
     .code = 32,
     .previous = 24,
     .instruction = 104,
     .owner = 0,
     .frame_bytes = 112,
     .filename = 104,
     .name = 112,
     .qualname = 0,
     .first_line = 40,
     .line_table = 120,
     .instructions = 48,
     .text = 48,
     .gil_place = GilPlace::kInRuntime,
     .gil = 352,
     .entry_owner = kNoEntryFrames,
     .last_owner = 0},
    {.minor = 10,
     .interpreters = 32,
     .next_interpreter = 0,
     .threads = 8,
     .next_thread = 8,
     .pthread = 176,
     .native_thread = 0,
     .frame = 24,
     .frame_in_cframe = kDirect,
     .chunk = 0,
     .code = 32,
     .previous = 24,
     .instruction = 96,
     .owner = 0,
     .frame_bytes = 104,
     .filename = 104,
     .name = 112,
     .qualname = 0,
     .first_line = 40,
     .line_table = 120,
     .instructions = 48,
     .text = 48,
     .gil_place = GilPlace::kInRuntime,
     .gil = 352,
     .entry_owner = kNoEntryFrames,
     .last_owner = 0},
    {.minor = 11,
     .interpreters = 40,
     .next_interpreter = 0,
     .threads = 16,
     .next_thread = 8,
     .pthread = 152,
     .native_thread = 160,
     .frame = 56,
     .frame_in_cframe = 8,
     .chunk = 296,
     .code = 32,
     .previous = 48,
     .instruction = 56,
     .owner = 69,
     .frame_bytes = 80,
     .filename = 112,
     .name = 120,
     .qualname = 128,
     .first_line = 72,
     .line_table = 136,
     .instructions = 184,
     .text = 48,
     .gil_place = GilPlace::kInRuntime,
     .gil = 360,
     .entry_owner = kNoEntryFrames,
     .last_owner = 2},
    {.minor = 12,
     .interpreters = 40,
     .next_interpreter = 0,
     .threads = 72,
     .next_thread = 8,
     .pthread = 136,
     .native_thread = 144,
     .frame = 56,
     .frame_in_cframe = 0,
     .chunk = 232,
     .code = 0,
     .previous = 8,
     .instruction = 56,
     .owner = 70,
     .frame_bytes = 80,
     .filename = 112,
     .name = 120,
     .qualname = 128,
     .first_line = 68,
     .line_table = 136,
     .instructions = 192,
     .text = 40,
     .gil_place = GilPlace::kByPointer,
     .gil = 384,
     .entry_owner = 3,
     .last_owner = 3},
};

// The numbers behind the cookie, in their order; 3.14 and 3.15 have more of them.
constexpr size_t kMostNumbers = 64;

struct Numbers {
  std::array<uint64_t, kMostNumbers> at;
  size_t next = 0;
  bool fits = true;

  uint32_t Take() {
    constexpr uint64_t kFarthest = 1 << 24;
    const uint64_t number = next < at.size() ? at[next] : kFarthest;
    ++next;
    if (number >= kFarthest) fits = false;
    return static_cast<uint32_t>(number);
  }
  void Skip(size_t count) { next += count; }
};

std::string_view ReadPublished(MemoryReader& memory, const PythonPlace& place, uint32_t minor,
                               PythonLayout* layout) {
  char cookie[8];
  Numbers numbers;
  if (!memory.Read(place.runtime, cookie, sizeof(cookie)) ||
      !memory.Read(place.runtime + sizeof(cookie), numbers.at.data(), sizeof(numbers.at))) {
    return "its memory cannot be read";
  }
  if (std::memcmp(cookie, "xdebugpy", sizeof(cookie)) != 0) {
    return "its runtime does not begin with the table of offsets";
  }
  const bool from_314 = minor >= 14, from_315 = minor >= 15;
  const uint64_t version = numbers.at[numbers.next++];
  if (version >> 16 != (0x0300u | minor)) return "its table of offsets is of another version";
  if (numbers.at[numbers.next++] != 0) return "it is built without the GIL";
  *layout = {};
  layout->minor = static_cast<uint16_t>(minor);
  numbers.Skip(2);  // size, finalizing
  layout->interpreters = numbers.Take();
  numbers.Skip(2);  // size, id
  layout->next_interpreter = numbers.Take();
  layout->threads = numbers.Take();
  numbers.Skip(from_314 ? 5 : 4);  // main thread, gc, modules, sysdict, builtins
  layout->gil = numbers.Take();
  numbers.Skip(from_314 ? 6 : 4);  // the lock's state, generations
  numbers.Skip(2);                 // size, prev
  layout->next_thread = numbers.Take();
  numbers.Skip(1);  // interp
  layout->frame = numbers.Take();
  layout->frame_in_cframe = kDirect;
  numbers.Skip(from_315 ? 3 : 0);  // base_frame, last_profiled_frame and its sequence
  layout->pthread = numbers.Take();
  layout->native_thread = numbers.Take();
  layout->chunk = numbers.Take();
  numbers.Skip(1);                 // status
  numbers.Skip(from_315 ? 5 : 0);  // holds_gil, gil_requested, exceptions
  layout->frame_bytes = numbers.Take();
  layout->previous = numbers.Take();
  layout->code = numbers.Take();
  layout->instruction = numbers.Take();
  numbers.Skip(1);  // localsplus
  layout->owner = numbers.Take();
  numbers.Skip(from_314 ? 2 : 0);  // stackpointer, tlbc_index
  numbers.Skip(1);                 // size
  layout->filename = numbers.Take();
  layout->name = numbers.Take();
  layout->qualname = numbers.Take();
  layout->line_table = numbers.Take();
  layout->first_line = numbers.Take();
  numbers.Skip(3);  // argcount, names and kinds of locals
  layout->instructions = numbers.Take();
  layout->text = 40;
  layout->gil_place = GilPlace::kByPointer;
  layout->entry_owner = 3;
  layout->last_owner = minor == 14 ? 4 : 3;
  return numbers.fits ? "" : "its table of offsets makes no sense";
}

}  // namespace

std::string_view FindPythonLayout(MemoryReader& memory, const PythonPlace& place,
                                  PythonLayout* layout) {
  const uint32_t minor = place.version >> 16 & 0xff;
  if (place.runtime == 0 || place.code_type == 0) return "its runtime is not among its symbols";
  if (place.version >> 24 != 3) return "its version is not known";
  if (place.counts_references) return "it is a debug build";
  if (minor >= 13 && minor <= 15) return ReadPublished(memory, place, minor, layout);
  for (const PythonLayout& known : kLayouts) {
    if (known.minor != minor) continue;
    *layout = known;
    return "";
  }
  return minor < 9 ? "it is older than 3.9" : "it is newer than 3.15";
}

}  // namespace ranktap::proto

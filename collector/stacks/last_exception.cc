#include "collector/stacks/last_exception.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace ranktap::collector {
namespace {

using proto::PythonCode;

// Offsets of 3.11 to 3.14, by offsetof in 3.11.7 and 3.13.0.
constexpr uint32_t kType = 8, kTypeName = 24;              // of an object, of a type
constexpr uint32_t kTupleSize = 16, kTupleItems = 24;      // of a tuple
constexpr uint32_t kKeys = 32;                             // of a dict
constexpr uint32_t kArguments = 24, kTraceback = 40;       // of an exception
constexpr uint32_t kNext = 16, kFrameOf = 24, kLine = 36;  // of a traceback
constexpr uint32_t kInstruction = 32;                      // of a traceback, in bytes
constexpr uint32_t kInnerFrame = 24;                       // of a frame object

class Reader {
 public:
  Reader(proto::MemoryReader& memory, const proto::PythonPlace& place,
         const proto::PythonLayout& layout, proto::PythonFrames* frames)
      : memory_(memory), place_(place), layout_(layout), frames_(*frames) {}

  std::optional<LastException> Read() {
    uint64_t text_type = 0;
    const uint64_t value = FindLastValue(&text_type);
    LastException found;
    if (value == 0 || !TypeNameOf(value, &found.type)) return std::nullopt;
    found.message = MessageOf(value, text_type);
    AddFrames(Word(value + kTraceback), &found);
    return found;
  }

 private:
  uint64_t Word(uint64_t address) {
    uint64_t word = 0;
    return address != 0 && memory_.Read(address, &word) ? word : 0;
  }
  std::string TextOf(uint64_t text) {
    proto::PythonCodeText read;
    const PythonCode both{.filename = text, .name = text};
    return text != 0 && frames_.ReadNames(both, &read) ? read.file : "";
  }

  // Of the main interpreter, which is the last of the list.
  uint64_t FindInterpreter() {
    constexpr int kMost = 256;
    uint64_t interpreter = Word(place_.runtime + layout_.interpreters);
    for (int i = 0; i < kMost; ++i) {
      const uint64_t next = Word(interpreter + layout_.next_interpreter);
      if (next == 0) return interpreter;
      interpreter = next;
    }
    return 0;
  }
  // Where the interpreter has the dict of `sys`; 0: not known.
  uint64_t PlaceOfSys() {
    if (layout_.minor == 11) return 904;
    if (layout_.minor == 12) return 352;
    if (layout_.minor < 13) return 0;
    // 3.14 has one number more before it.
    const uint64_t number = layout_.minor == 13 ? 11 : 12;
    return Word(place_.runtime + (1 + number) * sizeof(uint64_t));
  }

  // The value of sys.last_value, and the type of its key: str. 0: there is none.
  uint64_t FindLastValue(uint64_t* text_type) {
    constexpr uint64_t kCounts = 16, kIndices = 32, kMostEntries = 1 << 16;
    constexpr uint8_t kGeneral = 0, kOfTexts = 1;
    const uint64_t place = PlaceOfSys();
    const uint64_t keys = place == 0 ? 0 : Word(Word(FindInterpreter() + place) + kKeys);
    std::array<uint8_t, 3> sizes{};  // of the table, of its indices in bytes, kind
    if (keys == 0 || !memory_.Read(keys + sizeof(uint64_t), sizes.data(), sizes.size())) return 0;
    const auto [size, index_bytes, kind] = sizes;
    if (index_bytes > 32 || (kind != kGeneral && kind != kOfTexts)) return 0;
    const uint64_t count = std::min(Word(keys + kCounts + sizeof(uint64_t)), kMostEntries);
    const uint64_t entries = keys + kIndices + (uint64_t{1} << index_bytes);
    const uint64_t stride = kind == kOfTexts ? 16 : 24, key_at = kind == kOfTexts ? 0 : 8;
    for (uint64_t i = count; i-- > 0;) {  // it is among the youngest
      const uint64_t key = Word(entries + i * stride + key_at);
      if (key == 0 || TextOf(key) != "last_value") continue;
      *text_type = Word(key + kType);
      return Word(entries + i * stride + key_at + sizeof(uint64_t));
    }
    return 0;
  }

  bool TypeNameOf(uint64_t object, std::string* name) {
    std::array<char, 64> text{};
    const uint64_t begin = Word(Word(object + kType) + kTypeName);
    if (begin == 0) return false;
    // It may lie at the end of what is mapped.
    size_t length = text.size();
    while (length > 1 && !memory_.Read(begin, text.data(), length)) length /= 2;
    name->assign(text.data(), ::strnlen(text.data(), length));
    return !name->empty() && *name != "NoneType";
  }

  std::string MessageOf(uint64_t value, uint64_t text_type) {
    const uint64_t arguments = Word(value + kArguments);
    if (Word(arguments + kTupleSize) != 1) return "";
    const uint64_t only = Word(arguments + kTupleItems);
    return Word(only + kType) == text_type ? TextOf(only) : "";
  }

  void AddFrames(uint64_t traceback, LastException* found) {
    for (; traceback != 0 && found->frames.size() < proto::PythonFrames::kMostFrames;
         traceback = Word(traceback + kNext)) {
      constexpr uint64_t kTagBits = 3;  // of a reference, from 3.14
      uint64_t code = Word(Word(Word(traceback + kFrameOf) + kInnerFrame) + layout_.code);
      if (layout_.minor >= 14) code &= ~kTagBits;
      if (Word(code + kType) != place_.code_type) return;
      PythonCode read{.address = code,
                      .filename = Word(code + layout_.filename),
                      .name = Word(code + layout_.name),
                      .qualname = Word(code + layout_.qualname),
                      .line_table = Word(code + layout_.line_table)};
      int32_t line = 0, instruction = 0;
      std::string table;
      if (!memory_.Read(code + layout_.first_line, &read.first_line) ||
          !memory_.Read(traceback + kLine, &line) ||
          !memory_.Read(traceback + kInstruction, &instruction)) {
        return;
      }
      // Worked out when it is first asked for, from 3.12 on.
      if (line < 0 && instruction >= 0 && frames_.ReadLineTable(read, &table)) {
        line = static_cast<int32_t>(proto::PythonLine(layout_.minor, table, read.first_line,
                                                      static_cast<uint32_t>(instruction)));
      }
      found->frames.insert(found->frames.begin(), {read, static_cast<uint32_t>(std::max(line, 0))});
    }
  }

  proto::MemoryReader& memory_;
  const proto::PythonPlace& place_;
  const proto::PythonLayout& layout_;
  proto::PythonFrames& frames_;
};

}  // namespace

std::optional<LastException> ReadLastException(proto::MemoryReader& memory,
                                               const proto::PythonPlace& place,
                                               const proto::PythonLayout& layout,
                                               proto::PythonFrames* frames) {
  return Reader(memory, place, layout, frames).Read();
}

}  // namespace ranktap::collector

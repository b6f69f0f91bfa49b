#include "proto/python_frames.h"

#include <algorithm>
#include <cstring>

namespace ranktap::proto {
namespace {

constexpr uint32_t kType = 8, kSize = 16, kBytesData = 32;  // of an object
constexpr size_t kMostTextBytes = 4096, kMostTableBytes = 48 << 10;

template <typename T>
T Load(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

void AppendUtf8(uint32_t point, std::string* to) {
  const auto add = [to](uint32_t byte) { to->push_back(static_cast<char>(byte)); };
  const auto rest = [add, point](int shift) { add(0x80 | (point >> shift & 0x3f)); };
  if (point < 0x80) return add(point);
  if (point < 0x800) return add(0xc0 | point >> 6), rest(0);
  if (point < 0x10000) return add(0xe0 | point >> 12), rest(6), rest(0);
  add(0xf0 | (point >> 18 & 7)), rest(12), rest(6), rest(0);
}

// PEP 626's table of 3.10: pairs of (bytes, signed lines), -128 for no line.
uint32_t LineIn310(std::string_view table, uint32_t first_line, uint32_t offset) {
  int64_t line = first_line;
  uint32_t end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    const auto lines = static_cast<int8_t>(table[i + 1]);
    if (lines != -128) line += lines;
    end += static_cast<uint8_t>(table[i]);
    if (offset < end) return lines == -128 || line < 0 ? 0 : static_cast<uint32_t>(line);
  }
  return 0;
}

// 3.9's: a pair takes effect where its bytes begin.
uint32_t LineIn39(std::string_view table, uint32_t first_line, uint32_t offset) {
  int64_t line = first_line;
  uint32_t begin = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    begin += static_cast<uint8_t>(table[i]);
    if (begin > offset) break;
    line += static_cast<int8_t>(table[i + 1]);
  }
  return line < 0 ? 0 : static_cast<uint32_t>(line);
}

// The table of locations: entries of a byte 1cccclll, and what its code `cccc` says follows, for
// lll + 1 instructions of two bytes.
uint32_t LineInLocations(std::string_view table, uint32_t first_line, uint32_t offset) {
  size_t at = 0;
  const auto read_varint = [&table, &at] {
    uint32_t value = 0;
    for (uint32_t shift = 0; at < table.size() && shift < 32; shift += 6) {
      const auto byte = static_cast<uint8_t>(table[at++]);
      value |= (byte & 0x3fu) << shift;
      if ((byte & 0x40) == 0) break;
    }
    return value;
  };
  const auto read_signed = [&read_varint] {
    const uint32_t value = read_varint();
    return (value & 1) != 0 ? -static_cast<int64_t>(value >> 1) : static_cast<int64_t>(value >> 1);
  };
  int64_t line = first_line;
  uint32_t end = 0;
  while (at < table.size()) {
    const auto head = static_cast<uint8_t>(table[at++]);
    const uint32_t code = head >> 3 & 15;
    end += (head & 7u) * 2 + 2;
    bool has_line = true;
    switch (code) {
      case 15:
        has_line = false;
        break;
      case 14:
        line += read_signed();
        (void)read_varint(), (void)read_varint(), (void)read_varint();
        break;
      case 13:
        line += read_signed();
        break;
      case 10:
      case 11:
      case 12:
        line += code - 10;
        at += 2;
        break;
      default:
        at += 1;
    }
    if (offset < end) return has_line && line > 0 ? static_cast<uint32_t>(line) : 0;
  }
  return 0;
}

}  // namespace

uint32_t PythonLine(uint16_t minor, std::string_view line_table, uint32_t first_line,
                    uint32_t offset) {
  if (minor <= 9) return LineIn39(line_table, first_line, offset);
  if (minor == 10) return LineIn310(line_table, first_line, offset);
  return LineInLocations(line_table, first_line, offset);
}

PythonFrames::PythonFrames(MemoryReader& memory, const PythonPlace& place,
                           const PythonLayout& layout)
    : memory_(memory),
      place_(place),
      layout_(layout),
      chunk_(kChunkBytes),
      codes_(kMostFrames * kCodeBytes) {
  links_.reserve(kMostFrames);
  pieces_.reserve(kMostFrames);
  frames_.reserve(kMostFrames);
}

bool PythonFrames::ReadThreads(std::vector<PythonThread>* threads, size_t most) {
  constexpr int kMostInterpreters = 256;
  threads->clear();
  uint64_t interpreter = 0;
  if (!memory_.Read(runtime() + layout_.interpreters, &interpreter)) return false;
  for (int i = 0; i < kMostInterpreters && interpreter != 0; ++i) {
    main_interpreter_ = interpreter;  // the last: new ones come before it
    if (!ReadInterpreter(interpreter, threads, most)) return false;
    if (!memory_.Read(interpreter + layout_.next_interpreter, &interpreter)) return false;
  }
  return true;
}

// struct _gil_runtime_state: an interval, the last holder, whether it is locked, a count, a
// condition variable. 0: not known.
uint64_t PythonFrames::FindGil(uint64_t interpreter) {
  if (layout_.gil_place == GilPlace::kInRuntime) return runtime() + layout_.gil;
  uint64_t gil = 0;
  return memory_.Read(interpreter + layout_.gil, &gil) ? gil : 0;
}

// 0: nobody, or not known.
uint64_t PythonFrames::FindGilHolder(uint64_t interpreter) {
  constexpr uint32_t kLastHolder = 8, kLocked = 16;
  const uint64_t gil = FindGil(interpreter);
  uint64_t holder = 0;
  int32_t locked = 0;
  if (gil == 0 || !memory_.Read(gil + kLastHolder, &holder) ||
      !memory_.Read(gil + kLocked, &locked)) {
    return 0;
  }
  return locked == 1 ? holder : 0;
}

uint32_t PythonFrames::CountGilWaiters() {
  // __wrefs of pthread_cond_t, glibc 2.25 and newer: three flags, then the number of waiters.
  constexpr uint32_t kCondition = 32, kReferences = 36, kFlagBits = 3;
  constexpr uint32_t kMostBelieved = 1 << 16;
  const uint64_t gil = FindGil(main_interpreter_);
  uint32_t references = 0;
  if (gil == 0 || !memory_.Read(gil + kCondition + kReferences, &references)) return 0;
  const uint32_t waiters = references >> kFlagBits;
  return waiters < kMostBelieved ? waiters : 0;
}

bool PythonFrames::ReadInterpreter(uint64_t interpreter, std::vector<PythonThread>* threads,
                                   size_t most) {
  uint64_t state = 0;
  if (!memory_.Read(interpreter + layout_.threads, &state)) return false;
  const uint64_t holder = FindGilHolder(interpreter);
  while (state != 0 && threads->size() < most) {
    PythonThread thread;
    if (!ReadThread(state, holder, &thread, &state)) return false;
    threads->push_back(thread);
  }
  return true;
}

bool PythonFrames::ReadThread(uint64_t state, uint64_t holder, PythonThread* thread,
                              uint64_t* next) {
  constexpr size_t kStateBytes = 320;
  const uint32_t last = std::max(
      {layout_.next_thread, layout_.frame, layout_.pthread, layout_.native_thread, layout_.chunk});
  std::array<std::byte, kStateBytes> copy;
  if (last + sizeof(uint64_t) > copy.size()) return false;
  if (!memory_.Read(state, copy.data(), last + sizeof(uint64_t))) return false;
  *next = Load<uint64_t>(&copy[layout_.next_thread]);
  thread->state = state;
  thread->holds_gil = state == holder;
  thread->pthread = Load<uint64_t>(&copy[layout_.pthread]);
  if (layout_.chunk != 0) thread->chunk = Load<uint64_t>(&copy[layout_.chunk]);
  thread->frame = Load<uint64_t>(&copy[layout_.frame]);
  if (layout_.frame_in_cframe != kDirect && thread->frame != 0 &&
      !memory_.Read(thread->frame + layout_.frame_in_cframe, &thread->frame)) {
    thread->frame = 0;
  }
  if (layout_.native_thread != 0) {
    thread->thread = static_cast<int32_t>(Load<uint64_t>(&copy[layout_.native_thread]));
  } else {
    // glibc's descriptor of the thread, on x86-64 since 2.4. Whoever uses it looks for the thread.
    constexpr uint32_t kDescriptorThread = 720;
    if (!memory_.Read(thread->pthread + kDescriptorThread, &thread->thread)) thread->thread = 0;
  }
  return true;
}

bool PythonFrames::Refresh(PythonThread* thread) {
  uint64_t next = 0;
  PythonThread now;
  if (!ReadThread(thread->state, 0, &now, &next) || now.pthread != thread->pthread) return false;
  now.holds_gil = thread->holds_gil;
  *thread = now;
  return true;
}

// Frames lie one after the other in the thread's chunk: one copy instead of a read for each.
void PythonFrames::CopyChunk(const PythonThread& thread) {
  constexpr uint64_t kReach = 1 << 24;
  chunk_begin_ = chunk_end_ = 0;
  if (thread.chunk == 0 || thread.frame < thread.chunk || thread.frame - thread.chunk > kReach) {
    return;
  }
  const uint64_t end = thread.frame + layout_.frame_bytes;
  const uint64_t begin = std::max(thread.chunk, end - std::min<uint64_t>(end, kChunkBytes));
  if (!memory_.Read(begin, chunk_.data(), end - begin)) return;
  chunk_begin_ = begin;
  chunk_end_ = end;
}

const std::byte* PythonFrames::FrameAt(uint64_t address) {
  if (address >= chunk_begin_ && address < chunk_end_ &&
      chunk_end_ - address >= layout_.frame_bytes) {
    return &chunk_[address - chunk_begin_];
  }
  if (layout_.frame_bytes > single_.size()) return nullptr;
  return memory_.Read(address, single_.data(), layout_.frame_bytes) ? single_.data() : nullptr;
}

bool PythonFrames::ReadLinks(uint64_t frame, bool* truncated) {
  constexpr size_t kMostSteps = 4 * kMostFrames;  // entry frames are steps too
  constexpr uint64_t kTagBits = 3;                // of a reference, from 3.14
  links_.clear();
  for (size_t step = 0; frame != 0; ++step) {
    if (links_.size() == kMostFrames || step == kMostSteps) return *truncated = true;
    if (frame % alignof(uint64_t) != 0) return false;
    const std::byte* const copy = FrameAt(frame);
    if (copy == nullptr) return false;
    Link link{.code = Load<uint64_t>(copy + layout_.code), .instruction = 0};
    if (layout_.minor >= 14) link.code &= ~kTagBits;
    if (layout_.chunk == 0) {
      link.instruction = Load<uint32_t>(copy + layout_.instruction);
    } else {
      link.instruction = Load<uint64_t>(copy + layout_.instruction);
    }
    const uint8_t owner = layout_.owner == 0 ? 0 : Load<uint8_t>(copy + layout_.owner);
    frame = Load<uint64_t>(copy + layout_.previous);
    if (owner > layout_.last_owner) return false;
    if (owner < layout_.entry_owner) links_.push_back(link);
  }
  return true;
}

bool PythonFrames::ReadCodes() {
  const size_t bytes =
      std::max({layout_.filename, layout_.name, layout_.qualname, layout_.line_table,
                layout_.first_line, layout_.chunk == 0 ? layout_.instructions : 0}) +
      sizeof(uint64_t);
  if (bytes > kCodeBytes) return false;
  pieces_.clear();
  for (size_t i = 0; i < links_.size(); ++i) {
    if (links_[i].code % alignof(uint64_t) != 0) return false;
    pieces_.push_back({links_[i].code, &codes_[i * kCodeBytes], bytes});
  }
  return memory_.ReadPieces(pieces_) == pieces_.size();
}

bool PythonFrames::Believe(const Link& link, const std::byte* code, PythonFrame* frame) {
  if (Load<uint64_t>(code + kType) != place_.code_type + shift_) return false;
  frame->code = {.address = link.code,
                 .filename = Load<uint64_t>(code + layout_.filename),
                 .name = Load<uint64_t>(code + layout_.name),
                 .qualname = layout_.qualname == 0 ? 0 : Load<uint64_t>(code + layout_.qualname),
                 .line_table = Load<uint64_t>(code + layout_.line_table),
                 .first_line = Load<uint32_t>(code + layout_.first_line),
                 .code_bytes = 0};
  constexpr int64_t kUnit = 2, kMostCodeBytes = 1 << 28;
  int64_t offset = 0, size = 0;
  if (layout_.chunk == 0) {
    // Its bytes lie elsewhere, and are not asked for: an index beyond them finds no line.
    offset = static_cast<int32_t>(link.instruction) * (layout_.minor == 10 ? kUnit : 1);
    size = kMostCodeBytes;
  } else {
    offset = static_cast<int64_t>(link.instruction - link.code - layout_.instructions);
    size = Load<int64_t>(code + kSize) * kUnit;
    if (size <= 0 || size > kMostCodeBytes) return false;
    frame->code.code_bytes = static_cast<uint32_t>(size);
  }
  // A frame that has not begun stands one instruction before its first.
  if (offset < -kUnit || offset >= size || offset % kUnit != 0) return false;
  frame->offset = static_cast<uint32_t>(std::max<int64_t>(offset, 0));
  return true;
}

StackRead PythonFrames::ReadStack(const PythonThread& thread,
                                  std::span<const PythonFrame>* frames) {
  bool truncated = false;
  frames_.clear();
  *frames = {};
  CopyChunk(thread);
  if (!ReadLinks(thread.frame, &truncated) || !ReadCodes()) return StackRead::kTorn;
  for (size_t i = 0; i < links_.size(); ++i) {
    PythonFrame frame;
    if (!Believe(links_[i], &codes_[i * kCodeBytes], &frame)) return StackRead::kTorn;
    frames_.push_back(frame);
  }
  *frames = frames_;
  return truncated ? StackRead::kTruncated : StackRead::kRead;
}

bool PythonFrames::ReadNames(const PythonCode& code, PythonCodeText* text) {
  const uint64_t name = code.qualname != 0 ? code.qualname : code.name;
  return ReadText(code.filename, &text->file) && ReadText(name, &text->name);
}

bool PythonFrames::ReadText(uint64_t text, std::string* to) {
  constexpr uint32_t kState = 32, kStateBytes = sizeof(uint64_t);
  constexpr uint32_t kCompact = 1 << 3, kAscii = 1 << 4;     // beside the kind
  const uint32_t utf8_bytes = layout_.text == 48 ? 24 : 16;  // of a string's own copy in UTF-8
  std::array<std::byte, kState + kStateBytes> head;
  to->clear();
  if (!memory_.Read(text, head.data(), head.size())) return false;
  const auto length = Load<int64_t>(&head[kSize]);
  const auto bits = Load<uint32_t>(&head[kState]);
  // 3.14.0 counts what is interned in 16 bits, up to 3; 3.14.8 in two, as all the others do.
  const uint32_t state = bits >> (layout_.minor == 14 && (bits & 0xff) <= 3 ? 16 : 2);
  const uint32_t kind = state & 7;
  if (length < 0 || (state & kCompact) == 0 || (kind != 1 && kind != 2 && kind != 4)) return false;
  const auto points = std::min<uint64_t>(static_cast<uint64_t>(length), kMostTextBytes / kind);
  std::array<std::byte, kMostTextBytes> data;
  const uint64_t begin = text + layout_.text + ((state & kAscii) != 0 ? 0 : utf8_bytes);
  if (!memory_.Read(begin, data.data(), points * kind)) return false;
  for (uint64_t i = 0; i < points; ++i) {
    const std::byte* const at = &data[i * kind];
    AppendUtf8(kind == 1   ? Load<uint8_t>(at)
               : kind == 2 ? Load<uint16_t>(at)
                           : Load<uint32_t>(at),
               to);
  }
  return true;
}

bool PythonFrames::ReadBytes(uint64_t bytes, std::string* to) {
  int64_t length = 0;
  if (!memory_.Read(bytes + kSize, &length) || length < 0) return false;
  to->resize(std::min<uint64_t>(static_cast<uint64_t>(length), kMostTableBytes));
  return memory_.Read(bytes + kBytesData, to->data(), to->size());
}

}  // namespace ranktap::proto

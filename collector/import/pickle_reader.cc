#include "collector/import/pickle_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace ranktap::collector {
namespace {

// That are looked at in search of one: the dicts of snapshots have a dozen, and a hostile file may
// name one large dict a million times.
constexpr size_t kMostKeys = 64;

// Operations that would run code, and others that plain values do not need.
std::string_view NameOfRefused(uint8_t opcode) {
  switch (opcode) {
    case 'c':
      return "GLOBAL";
    case 0x93:
      return "STACK_GLOBAL";
    case 'R':
      return "REDUCE";
    case 'b':
      return "BUILD";
    case 'i':
      return "INST";
    case 'o':
      return "OBJ";
    case 0x81:
      return "NEWOBJ";
    case 0x92:
      return "NEWOBJ_EX";
    case 'P':
    case 'Q':
      return "PERSID";
    case 0x82:
    case 0x83:
    case 0x84:
      return "EXT";
    default:
      return "";
  }
}

int64_t LittleEndian(std::string_view bytes) {
  uint64_t value = 0;
  const size_t size = std::min<size_t>(bytes.size(), 8);
  for (size_t i = 0; i < size; ++i) value |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  const bool negative = size > 0 && size < 8 && (static_cast<uint8_t>(bytes[size - 1]) & 0x80) != 0;
  if (negative) value |= ~uint64_t{0} << (8 * size);
  return static_cast<int64_t>(value);
}

}  // namespace

Pickle::Pickle(std::string_view bytes) : bytes_(bytes), values_(1) { Run(); }

int64_t Pickle::Int(Id id) const {
  const Value& value = values_[id];
  if (value.kind == Kind::kInt) return value.number_or_offset;
  if (value.kind != Kind::kReal) return 0;
  const auto real = std::bit_cast<double>(value.number_or_offset);
  return real > -9e18 && real < 9e18 ? static_cast<int64_t>(real) : 0;
}

std::string_view Pickle::Text(Id id) const {
  const Value& value = values_[id];
  if (value.kind != Kind::kText) return {};
  return bytes_.substr(static_cast<size_t>(value.number_or_offset), value.size_or_container);
}

std::span<const Pickle::Id> Pickle::Items(Id id) const {
  const Value& value = values_[id];
  if (value.kind != Kind::kList && value.kind != Kind::kDict) return {};
  return containers_[value.size_or_container];
}

Pickle::Id Pickle::Find(Id dict, std::string_view key) const {
  if (values_[dict].kind != Kind::kDict) return 0;
  const std::span<const Id> items = Items(dict);
  for (size_t i = 0; i + 1 < std::min(items.size(), 2 * kMostKeys); i += 2) {
    if (Text(items[i]) == key) return items[i + 1];
  }
  return 0;
}

void Pickle::Run() {
  while (true) {
    const size_t start = at_;
    std::string_view opcode;
    if (!Take(1, &opcode)) {
      damage_ = {start, 0, "the pickle has no end"};
      break;
    }
    if (opcode[0] == '.') break;
    const auto code = static_cast<uint8_t>(opcode[0]);
    if (Step(code)) continue;
    const std::string_view refused = NameOfRefused(code);
    damage_ = {
        start, bytes_.size() - start,
        refused.empty()
            ? std::string("a pickle's opcode that is cut off or malformed")
            : fmt::format("the pickle asks for {}, which may run code; nothing of it was executed",
                          refused)};
    break;
  }
  CloseAll();
  if (!stack_.empty()) root_ = stack_.front();
}

// As if the file had closed everything that is open.
void Pickle::CloseAll() {
  while (!marks_.empty()) {
    const size_t from = marks_.back();
    marks_.pop_back();
    Fill(from);
  }
}

bool Pickle::Step(uint8_t opcode) {
  size_t from = 0;
  std::string_view ignored;
  switch (opcode) {
    case 0x80:  // PROTO
      return Take(1, &ignored);
    case 0x95:  // FRAME
      return Take(8, &ignored);
    case '(':  // MARK
      marks_.push_back(stack_.size());
      return true;
    case '0':  // POP
      if (stack_.empty() || (!marks_.empty() && marks_.back() == stack_.size())) return false;
      stack_.pop_back();
      return true;
    case '1':  // POP_MARK
      if (!PopMark(&from)) return false;
      stack_.resize(from);
      return true;
    case '2':  // DUP
      if (stack_.empty()) return false;
      stack_.push_back(stack_.back());
      return true;
    case 'N':  // NONE
      stack_.push_back(0);
      return true;
    default:
      return StepNumber(opcode) || StepText(opcode) || StepContainer(opcode) || StepMemo(opcode);
  }
}

bool Pickle::StepNumber(uint8_t opcode) {
  std::string_view taken;
  uint64_t length = 0;
  switch (opcode) {
    case 0x88:  // NEWTRUE
    case 0x89:  // NEWFALSE
      return PushInt(opcode == 0x88);
    case 'J':  // BININT
      return Take(4, &taken) && PushInt(LittleEndian(taken));
    case 'K':  // BININT1
      return Take(1, &taken) && PushInt(static_cast<uint8_t>(taken[0]));
    case 'M':  // BININT2
      return Take(2, &taken) &&
             PushInt(static_cast<uint8_t>(taken[0]) | static_cast<uint8_t>(taken[1]) << 8);
    case 0x8a:  // LONG1
    case 0x8b:  // LONG4
      return TakeLength(opcode == 0x8a ? 1 : 4, &length) && Take(length, &taken) &&
             PushInt(LittleEndian(taken));
    case 'I':  // INT
    case 'L':  // LONG
    {
      if (!TakeLine(&taken)) return false;
      int64_t value = 0;
      std::from_chars(taken.data(), taken.data() + taken.size(), value);
      return PushInt(value);
    }
    case 'G':  // BINFLOAT, big endian
    {
      if (!Take(8, &taken)) return false;
      uint64_t bits = 0;
      std::memcpy(&bits, taken.data(), sizeof(bits));
      Push({Kind::kReal, 0, static_cast<int64_t>(__builtin_bswap64(bits))});
      return true;
    }
    case 'F':  // FLOAT
    {
      if (!TakeLine(&taken)) return false;
      double value = 0;
      std::from_chars(taken.data(), taken.data() + taken.size(), value);
      Push({Kind::kReal, 0, std::bit_cast<int64_t>(value)});
      return true;
    }
    default:
      return false;
  }
}

bool Pickle::StepText(uint8_t opcode) {
  uint64_t length = 0;
  std::string_view line;
  switch (opcode) {
    case 0x8c:  // SHORT_BINUNICODE
    case 'U':   // SHORT_BINSTRING
    case 'C':   // SHORT_BINBYTES
      return TakeLength(1, &length) && PushText(length);
    case 'X':  // BINUNICODE
    case 'T':  // BINSTRING
    case 'B':  // BINBYTES
      return TakeLength(4, &length) && PushText(length);
    case 0x8d:  // BINUNICODE8
    case 0x8e:  // BINBYTES8
    case 0x96:  // BYTEARRAY8
      return TakeLength(8, &length) && PushText(length);
    case 'V':  // UNICODE
    case 'S':  // STRING
      if (!TakeLine(&line)) return false;
      Push({Kind::kText, static_cast<uint32_t>(line.size()), line.data() - bytes_.data()});
      return true;
    default:
      return false;
  }
}

bool Pickle::StepContainer(uint8_t opcode) {
  size_t from = 0;
  switch (opcode) {
    case ']':   // EMPTY_LIST
    case ')':   // EMPTY_TUPLE
    case 0x8f:  // EMPTY_SET
      return PushContainer(Kind::kList, stack_.size());
    case '}':  // EMPTY_DICT
      return PushContainer(Kind::kDict, stack_.size());
    case 0x85:  // TUPLE1
    case 0x86:  // TUPLE2
    case 0x87:  // TUPLE3
    {
      const size_t count = opcode - 0x84u;
      const size_t bottom = marks_.empty() ? 0 : marks_.back();
      if (stack_.size() - bottom < count) return false;
      return PushContainer(Kind::kList, stack_.size() - count);
    }
    case 'l':   // LIST
    case 't':   // TUPLE
    case 0x91:  // FROZENSET
      return PopMark(&from) && PushContainer(Kind::kList, from);
    case 'd':  // DICT
      return PopMark(&from) && PushContainer(Kind::kDict, from);
    case 'a':  // APPEND
      return !stack_.empty() && Fill(stack_.size() - 1);
    case 's':  // SETITEM
      return stack_.size() >= 2 && Fill(stack_.size() - 2);
    case 'e':   // APPENDS
    case 'u':   // SETITEMS
    case 0x90:  // ADDITEMS
      return PopMark(&from) && Fill(from);
    default:
      return false;
  }
}

bool Pickle::StepMemo(uint8_t opcode) {
  std::string_view taken;
  uint64_t index = 0;
  switch (opcode) {
    case 0x94:  // MEMOIZE
      return Remember(memo_.size());
    case 'q':  // BINPUT
      return TakeLength(1, &index) && Remember(index);
    case 'r':  // LONG_BINPUT
      return TakeLength(4, &index) && Remember(index);
    case 'h':  // BINGET
      return TakeLength(1, &index) && Recall(index);
    case 'j':  // LONG_BINGET
      return TakeLength(4, &index) && Recall(index);
    case 'p':  // PUT
    case 'g':  // GET
      if (!TakeLine(&taken)) return false;
      std::from_chars(taken.data(), taken.data() + taken.size(), index);
      return opcode == 'p' ? Remember(index) : Recall(index);
    default:
      return false;
  }
}

bool Pickle::Take(size_t bytes, std::string_view* taken) {
  if (bytes_.size() - at_ < bytes) return false;
  *taken = bytes_.substr(at_, bytes);
  at_ += bytes;
  return true;
}

bool Pickle::TakeLength(size_t bytes, uint64_t* length) {
  std::string_view taken;
  if (!Take(bytes, &taken)) return false;
  *length = 0;
  for (size_t i = 0; i < bytes; ++i) {
    *length |= uint64_t{static_cast<uint8_t>(taken[i])} << (8 * i);
  }
  return true;
}

bool Pickle::TakeLine(std::string_view* line) {
  const size_t end = bytes_.find('\n', at_);
  if (end == std::string_view::npos || end - at_ > UINT32_MAX) return false;
  *line = bytes_.substr(at_, end - at_);
  at_ = end + 1;
  return true;
}

void Pickle::Push(Value value) {
  stack_.push_back(static_cast<Id>(values_.size()));
  values_.push_back(value);
}

bool Pickle::PushInt(int64_t value) {
  Push({Kind::kInt, 0, value});
  return true;
}

bool Pickle::PushText(uint64_t bytes) {
  std::string_view text;
  if (bytes > UINT32_MAX || !Take(bytes, &text)) return false;
  Push({Kind::kText, static_cast<uint32_t>(bytes), text.data() - bytes_.data()});
  return true;
}

bool Pickle::PushContainer(Kind kind, size_t from) {
  const auto container = static_cast<uint32_t>(containers_.size());
  containers_.emplace_back(stack_.begin() + static_cast<ptrdiff_t>(from), stack_.end());
  stack_.resize(from);
  Push({kind, container, 0});
  return true;
}

bool Pickle::Fill(size_t from) {
  if (from == 0 || from > stack_.size() || (!marks_.empty() && marks_.back() > from)) return false;
  const Value& below = values_[stack_[from - 1]];
  const bool fits = below.kind == Kind::kList || below.kind == Kind::kDict;
  if (fits) {
    std::vector<Id>& items = containers_[below.size_or_container];
    size_t count = stack_.size() - from;
    if (below.kind == Kind::kDict) count -= count % 2;  // a key whose value is cut off
    items.insert(items.end(), stack_.begin() + static_cast<ptrdiff_t>(from),
                 stack_.begin() + static_cast<ptrdiff_t>(from + count));
  }
  stack_.resize(from);
  return fits;
}

bool Pickle::PopMark(size_t* from) {
  if (marks_.empty() || marks_.back() > stack_.size()) return false;
  *from = marks_.back();
  marks_.pop_back();
  return true;
}

bool Pickle::Remember(uint64_t index) {
  // Each entry takes a byte of the file at least.
  if (stack_.empty() || index > bytes_.size()) return false;
  if (memo_.size() <= index) memo_.resize(index + 1);
  memo_[index] = stack_.back();
  return true;
}

bool Pickle::Recall(uint64_t index) {
  if (index >= memo_.size()) return false;
  stack_.push_back(memo_[index]);
  return true;
}

}  // namespace ranktap::collector

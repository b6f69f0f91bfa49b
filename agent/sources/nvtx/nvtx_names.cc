// Names into the arena.
// Runs on: user threads.  May not: allocate, lock, log, make a system call.
#include "agent/sources/nvtx/nvtx_names.h"

#include <array>

#include "proto/operator_payload.h"

namespace ranktap::agent {

using proto::ArenaRef;
using proto::EntryKind;

namespace {

// wchar_t is UTF-32 on Linux. A value that is not a code point becomes U+FFFD.
class Utf8 {
 public:
  explicit Utf8(const wchar_t* text) {
    for (; text != nullptr && *text != 0 && size_ + 4 <= bytes_.size(); ++text) {
      const auto point = static_cast<uint32_t>(*text);
      const bool valid = point < 0x110000 && (point < 0xd800 || point > 0xdfff);
      Append(valid ? point : 0xfffd);
    }
  }
  std::string_view view() const { return {bytes_.data(), size_}; }

 private:
  void Append(uint32_t point) {
    if (point < 0x80) return Put(point);
    if (point < 0x800) {
      Put(0xc0 | point >> 6);
    } else {
      if (point < 0x10000) {
        Put(0xe0 | point >> 12);
      } else {
        Put(0xf0 | point >> 18);
        Put(0x80 | (point >> 12 & 0x3f));
      }
      Put(0x80 | (point >> 6 & 0x3f));
    }
    Put(0x80 | (point & 0x3f));
  }
  void Put(uint32_t byte) { bytes_[size_++] = static_cast<char>(byte); }

  // A kilobyte: hooks must get by with 4 KiB of stack.
  std::array<char, 1024> bytes_;
  size_t size_ = 0;
};

std::string_view Bounded(const char* text) { return {text, strnlen(text, kMaxNameBytes)}; }

// Takes `mark` and the digits behind it from the end of `text`; false: they are not there.
bool TakeNumber(std::string_view mark, std::string_view& text, uint64_t& number) {
  size_t at = text.size();
  uint64_t value = 0, place = 1;
  for (; at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9'; place *= 10) {
    value += place * static_cast<uint64_t>(text[--at] - '0');
  }
  if (at == text.size() || text.size() - at > 19 || !text.substr(0, at).ends_with(mark)) {
    return false;
  }
  text = text.substr(0, at - mark.size());
  number = value;
  return true;
}

}  // namespace

EventName InternName(ThreadState& thread, const char* text) {
  if (text == nullptr) return {};
  const std::string_view name = Bounded(text);
  const ArenaRef ref = Names().InternText(name);
  if (ref == 0) return {.ref = 0, .inline_text = name};
  if (name.size() < kMaxNameBytes) {
    thread.names.Remember(text, Names().Find(ref), ref);
  }
  return {.ref = ref};
}

EventName NameOfPushedText(ThreadState& thread, const char* text,
                           proto::NvtxAttributes& attributes) {
  if (text == nullptr) return {};
  std::string_view name = Bounded(text);
  uint64_t id = 0, sequence = 0;
  if (!TakeNumber(", op_id = ", name, id)) return InternName(thread, text);
  if (TakeNumber(", seq = ", name, sequence)) ++sequence;
  attributes.payload_type = proto::kOperatorPayload;
  attributes.payload = id;
  attributes.category = static_cast<uint32_t>(sequence);
  attributes.color = static_cast<uint32_t>(sequence >> 32);
  const ArenaRef ref = Names().InternText(name);
  return ref != 0 ? EventName{.ref = ref} : EventName{.inline_text = name};
}

EventName NameOfWideText(const wchar_t* text) {
  if (text == nullptr) return {};
  return {.ref = Names().InternText(Utf8(text).view())};
}

ArenaRef RegisterText(EntryKind kind, const char* text) {
  if (text == nullptr) return kNoName;
  const ArenaRef ref = Names().Intern(kind, std::as_bytes(std::span(Bounded(text))));
  return ref != 0 ? ref : kNoName;
}

ArenaRef RegisterWideText(EntryKind kind, const wchar_t* text) {
  const Utf8 utf8(text);
  const ArenaRef ref = Names().Intern(kind, std::as_bytes(std::span(utf8.view())));
  return ref != 0 ? ref : kNoName;
}

}  // namespace ranktap::agent

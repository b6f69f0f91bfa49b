#include "collector/file/printable.h"

#include <cstdint>

namespace ranktap::collector {
namespace {

// The code point that a good sequence of `length` bytes encodes.
uint32_t CodePoint(std::string_view text, size_t length) {
  constexpr uint8_t kFirstBits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
  uint32_t code = static_cast<uint8_t>(text[0]) & kFirstBits[length];
  for (size_t i = 1; i < length; ++i) code = code << 6 | (static_cast<uint8_t>(text[i]) & 0x3f);
  return code;
}

bool IsHarmless(uint32_t code) {
  const auto is_in = [code](uint32_t first, uint32_t last) {
    return code >= first && code <= last;
  };
  const bool is_control = code < 0x20 || is_in(0x7f, 0x9f);
  const bool turns_text =
      code == 0x61c || is_in(0x200e, 0x200f) || is_in(0x202a, 0x202e) || is_in(0x2066, 0x2069);
  const bool breaks_lines = is_in(0x2028, 0x2029);
  return !is_control && !turns_text && !breaks_lines;
}

}  // namespace

size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond Unicode.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

std::string Printable(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  while (!text.empty()) {
    const size_t length = Utf8Length(text);
    if (length != 0 && IsHarmless(CodePoint(text, length))) {
      clean += text.substr(0, length);
    } else {
      clean += '?';
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

std::string PrintableCell(std::string_view text) {
  const bool is_formula = !text.empty() && std::string_view("=+-@").find(text[0]) != text.npos;
  return (is_formula ? "'" : "") + Printable(text);
}

}  // namespace ranktap::collector

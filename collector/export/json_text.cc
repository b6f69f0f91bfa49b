#include "collector/export/json_text.h"

#include <algorithm>

namespace ranktap::collector {
namespace {

// Length of the UTF-8 sequence at the beginning of `text`; 0: it is none.
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

}  // namespace

void JsonText::Grow(size_t bytes) {
  text_.resize(std::max(text_.size() * 2, size_ + bytes + kLongestNumber));
}

JsonText& JsonText::Text(std::string_view text) {
  Raw("\"");
  for (size_t i = 0; i < text.size();) {
    const size_t length = Utf8Length(text.substr(i));
    const char byte = text[i];
    if (length == 0) {
      Raw("?");
    } else if (byte == '"' || byte == '\\') {
      Raw("\\").Raw(text.substr(i, 1));
    } else if (static_cast<uint8_t>(byte) < 0x20 || byte == 0x7f) {
      Raw(" ");
    } else {
      Raw(text.substr(i, length));
    }
    i += length == 0 ? 1 : length;
  }
  return Raw("\"");
}

std::string SanitizedName(std::string_view name) {
  std::string clean;
  for (size_t i = 0; i < name.size();) {
    const size_t length = Utf8Length(name.substr(i));
    const char byte = name[i];
    if (length == 0) {
      clean += '?';
    } else if (byte == '\\') {
      clean += '/';
    } else if (static_cast<uint8_t>(byte) < 0x20 || byte == 0x7f) {
      clean += ' ';
    } else {
      clean.append(name, i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return clean;
}

}  // namespace ranktap::collector

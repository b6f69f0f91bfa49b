#include "collector/export/json_text.h"

#include <algorithm>

#include "collector/file/printable.h"

namespace ranktap::collector {

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

#include "collector/import/json_scan.h"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace ranktap::collector {
namespace {

bool IsDigit(char byte) { return byte >= '0' && byte <= '9'; }

std::string_view WithoutQuotes(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    text.remove_prefix(1);
    text.remove_suffix(1);
  }
  return text;
}

// The digits of a number as an integer scaled by 10^`decimals`, rounded. False where plain digits
// are not all there is.
bool ParseScaled(std::string_view text, int decimals, int64_t* value) {
  size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++at;
  if (at == text.size() || !IsDigit(text[at])) return false;
  constexpr uint64_t kMost = 900000000000000000u;  // ten times this fits
  uint64_t number = 0;
  for (; at < text.size() && IsDigit(text[at]); ++at) {
    if (number > kMost) return false;
    number = number * 10 + static_cast<uint64_t>(text[at] - '0');
  }
  int taken = 0;
  bool round_up = false;
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && IsDigit(text[at]); ++at) {
      if (taken == decimals) {
        round_up = text[at] >= '5';
        while (at < text.size() && IsDigit(text[at])) ++at;
        break;
      }
      if (number > kMost) return false;
      number = number * 10 + static_cast<uint64_t>(text[at] - '0');
      ++taken;
    }
  }
  if (at != text.size()) return false;
  for (; taken < decimals; ++taken) {
    if (number > kMost) return false;
    number *= 10;
  }
  number += round_up ? 1 : 0;
  *value = negative ? -static_cast<int64_t>(number) : static_cast<int64_t>(number);
  return true;
}

bool ParseSlowly(std::string_view text, double scale, int64_t* value) {
  double real = 0;
  if (!ParseReal(text, &real)) return false;
  real *= scale;
  if (!(std::abs(real) < 9e18)) return false;
  *value = std::llround(real);
  return true;
}

void AppendUtf8(uint32_t code, std::string* out) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xc0 | code >> 6);
    *out += static_cast<char>(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    *out += static_cast<char>(0xe0 | code >> 12);
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    *out += static_cast<char>(0xf0 | code >> 18);
    *out += static_cast<char>(0x80 | (code >> 12 & 0x3f));
    *out += static_cast<char>(0x80 | (code >> 6 & 0x3f));
    *out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

bool ParseHex4(std::string_view raw, size_t at, uint32_t* code) {
  if (at + 4 > raw.size()) return false;
  *code = 0;
  for (size_t i = at; i < at + 4; ++i) {
    const char byte = raw[i];
    const int digit = IsDigit(byte)                              ? byte - '0'
                      : (byte | 32) >= 'a' && (byte | 32) <= 'f' ? (byte | 32) - 'a' + 10
                                                                 : -1;
    if (digit < 0) return false;
    *code = *code << 4 | static_cast<uint32_t>(digit);
  }
  return true;
}

// `at` is after "\u"; the place after the escape.
size_t AppendUnicode(std::string_view raw, size_t at, std::string* out) {
  uint32_t code = 0, low = 0;
  if (!ParseHex4(raw, at, &code)) {
    *out += "\\u";
    return at;
  }
  at += 4;
  if (code >= 0xd800 && code < 0xdc00 && raw.substr(at, 2) == "\\u" &&
      ParseHex4(raw, at + 2, &low) && low >= 0xdc00 && low < 0xe000) {
    code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    at += 6;
  } else if (code >= 0xd800 && code < 0xe000) {
    code = 0xfffd;
  }
  AppendUtf8(code, out);
  return at;
}

}  // namespace

const char* SkipValue(const char* p, const char* end) {
  p = SkipSpace(p);
  if (*p == '"') {
    const char* const close = StringEnd(p + 1, end);
    return close == nullptr ? nullptr : close + 1;
  }
  if (*p != '{' && *p != '[') {
    const char* const start = p;
    while (p < end && *p != ',' && *p != '}' && *p != ']' && *p != ' ' && *p != '\n' &&
           *p != '\r' && *p != '\t' && *p != '"' && *p != ':' && *p != '{' && *p != '[') {
      ++p;
    }
    return p == start || p >= end ? nullptr : p;
  }
  size_t depth = 0;
  while (p < end) {
    switch (*p) {
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (--depth == 0) return p + 1;
        break;
      case '"':
        p = StringEnd(p + 1, end);
        if (p == nullptr) return nullptr;
        break;
      default:
        break;
    }
    ++p;
  }
  return nullptr;
}

bool ParseMicroseconds(std::string_view text, int64_t* ns) {
  text = WithoutQuotes(text);
  return ParseScaled(text, 3, ns) || ParseSlowly(text, 1000, ns);
}

bool ParseInteger(std::string_view text, int64_t* value) {
  text = WithoutQuotes(text);
  return ParseScaled(text, 0, value) || ParseSlowly(text, 1, value);
}

bool ParseUnsigned(std::string_view text, uint64_t* value) {
  text = WithoutQuotes(text);
  if (text.empty()) return false;
  uint64_t number = 0;
  for (const char byte : text) {
    if (!IsDigit(byte)) {
      int64_t other = 0;
      if (!ParseInteger(text, &other) || other < 0) return false;
      *value = static_cast<uint64_t>(other);
      return true;
    }
    const auto digit = static_cast<uint64_t>(byte - '0');
    if (number > (std::numeric_limits<uint64_t>::max() - digit) / 10) return false;
    number = number * 10 + digit;
  }
  *value = number;
  return true;
}

bool ParseReal(std::string_view text, double* value) {
  text = WithoutQuotes(text);
  char copy[64];
  if (text.empty() || text.size() >= sizeof copy) return false;
  copy[text.copy(copy, sizeof copy - 1)] = 0;
  char* stopped = nullptr;
  *value = std::strtod(copy, &stopped);
  return stopped == copy + text.size() && std::isfinite(*value);
}

std::string SpacedAsTorch(std::string_view raw) {
  if (raw.empty() || (raw[0] != '[' && raw[0] != '{')) return std::string(raw);
  std::string out;
  out.reserve(raw.size());
  bool in_text = false;
  for (size_t i = 0; i < raw.size(); ++i) {
    const char byte = raw[i];
    if (!in_text && (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t')) continue;
    out += byte;
    if (byte == '"') in_text = !in_text;
    if (in_text && byte == '\\' && i + 1 < raw.size()) out += raw[++i];
    if (!in_text && (byte == ',' || byte == ':')) out += ' ';
  }
  return out;
}

std::string Unescaped(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (size_t at = 0; at < raw.size();) {
    if (raw[at] != '\\' || at + 1 == raw.size()) {
      out += raw[at++];
      continue;
    }
    const char escape = raw[at + 1];
    at += 2;
    switch (escape) {
      case 'n':
        out += '\n';
        break;
      case 't':
        out += '\t';
        break;
      case 'r':
        out += '\r';
        break;
      case 'b':
        out += '\b';
        break;
      case 'f':
        out += '\f';
        break;
      case 'u':
        at = AppendUnicode(raw, at, &out);
        break;
      default:
        out += escape;
    }
  }
  return out;
}

}  // namespace ranktap::collector

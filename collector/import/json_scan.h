// Scanning JSON text for values, without building anything: what the importers of trace files are
// made of. Tolerant: bad control characters and bad UTF-8 in strings pass, NaN and Infinity are
// numbers, a trailing comma is none of a scanner's business.
//
// The text must be followed by kPadding bytes that may be read, the first of them 0: a 0 byte is
// the end of what is there. Every function returns the place after what it took, or nullptr where
// the text ends or is malformed (see `at` of Cut()).
#pragma once

#include <emmintrin.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ranktap::collector {

// The place of JSON's first character, behind white space and a byte order mark.
inline size_t FirstOfJson(std::string_view head, size_t from = 0) {
  return head.find_first_not_of(" \t\r\n\xef\xbb\xbf", from);
}

inline constexpr size_t kJsonPadding = 32;

inline const char* SkipSpace(const char* p) {
  while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') ++p;
  return p;
}

// `p` is after the opening quote. The place of the closing one, or nullptr. `end` is the text's.
inline const char* StringEnd(const char* p, const char* end) {
  const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
  while (p < end) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const auto stops = static_cast<uint32_t>(_mm_movemask_epi8(
        _mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash))));
    if (stops == 0) {
      p += 16;
      continue;
    }
    p += std::countr_zero(stops);
    if (p >= end) return nullptr;
    if (*p == '"') return p;
    p += 2;
  }
  return nullptr;
}

// A value of any kind: its text is [value, returned). Strings keep their quotes.
const char* SkipValue(const char* p, const char* end);

// A number of microseconds, as a JSON number or in a string, exactly: "12.3456" is 12346 ns.
// False: it is none, or does not fit.
bool ParseMicroseconds(std::string_view text, int64_t* ns);
// A number without a fraction, as a JSON number or in a string ("7", 7, 7.0).
bool ParseInteger(std::string_view text, int64_t* value);
bool ParseUnsigned(std::string_view text, uint64_t* value);
bool ParseReal(std::string_view text, double* value);

// A list or an object as torch.profiler spaces it: one space after each comma and colon, no other.
// Any other text as it is.
std::string SpacedAsTorch(std::string_view raw);

// Without quotes, escapes resolved.
std::string Unescaped(std::string_view raw);

}  // namespace ranktap::collector

// Numbers in the sentences that analyses say: titles, notes, findings.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

namespace ranktap::collector {

inline std::string ThreeDigits(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, 3);
  return {text, end.ptr};
}

// "412 ms"
inline std::string Duration(int64_t ns) {
  const auto value = static_cast<double>(ns);
  const double size = value < 0 ? -value : value;
  // 999.5 of a unit is written as 1 of the next.
  if (size >= 999.5e6) return ThreeDigits(value / 1e9) + " s";
  if (size >= 999.5e3) return ThreeDigits(value / 1e6) + " ms";
  return ThreeDigits(value / 1e3) + " us";
}

// "17 %"
inline std::string Share(int64_t part, int64_t whole) {
  return ThreeDigits(100.0 * static_cast<double>(part) /
                     static_cast<double>(std::max<int64_t>(whole, 1))) +
         " %";
}

// "1 step", "2 steps"
inline std::string Counted(size_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace ranktap::collector

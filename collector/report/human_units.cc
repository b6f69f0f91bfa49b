#include "collector/report/human_units.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace ranktap::collector {
namespace {

std::string Fixed(double value, int decimals) {
  char text[400];  // what the largest double takes
  const auto end =
      std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, decimals);
  return {text, end.ptr};
}

// Four significant digits.
std::string Scaled(double value, const char* unit) {
  const double size = std::abs(value);
  return fmt::format("{} {}", Fixed(value, size < 9.9995 ? 3 : size < 99.995 ? 2 : 1), unit);
}

}  // namespace

std::string FormatNs(int64_t ns) {
  const double value = static_cast<double>(ns);
  const double size = std::abs(value);
  if (size < 1e3) return fmt::format("{} ns", ns);
  // A value that would be written as 1000.0 of a unit is 1.000 of the next.
  if (size < 999.95e3) return Scaled(value / 1e3, "us");
  if (size < 999.95e6) return Scaled(value / 1e6, "ms");
  return Scaled(value / 1e9, "s");
}

std::string FormatCount(int64_t count) {
  std::string digits = std::to_string(count);
  const size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t at = digits.size(); at > first + 3;) digits.insert(at -= 3, ",");
  return digits;
}

std::string FormatSignedBytes(int64_t bytes) {
  const auto size = static_cast<uint64_t>(bytes);
  return bytes < 0 ? "-" + FormatBytes(0 - size) : FormatBytes(size);
}

std::string FormatBytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{} {}", Fixed(value, unit == 0 ? 0 : 1), kUnits[unit]);
}

std::string FormatFlops(int64_t count) {
  if (std::abs(static_cast<double>(count)) < 1e6) return FormatCount(count);
  double value = static_cast<double>(count) / 1e6;
  for (const char* const unit : {"M", "G", "T", "P"}) {
    if (std::abs(value) < 999.95) return Scaled(value, unit);
    value /= 1e3;
  }
  return Scaled(value, "E");
}

std::string FormatPercent(double percent) { return Fixed(percent, 1) + " %"; }

std::string FormatShare(int64_t part, int64_t whole) {
  return FormatPercent(100.0 * static_cast<double>(part) /
                       static_cast<double>(std::max<int64_t>(whole, 1)));
}

std::string Counted(size_t count, const std::string& what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::optional<uint64_t> ParseDuration(std::string_view text) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !(value >= 0) || !std::isfinite(value)) return std::nullopt;
  const std::string_view unit(rest, text.data() + text.size());
  for (const auto& [name, ns] : {std::pair<std::string_view, double>{"", 1e9},
                                 {"s", 1e9},
                                 {"ms", 1e6},
                                 {"us", 1e3},
                                 {"ns", 1.0},
                                 {"m", 60e9},
                                 {"min", 60e9},
                                 {"h", 3600e9},
                                 {"d", 86400e9}}) {
    if (unit != name) continue;
    const double total = value * ns;
    // A thousand years: beyond it the number is a slip, and it would overflow.
    if (total > 3.2e19 / 2) return std::nullopt;
    return static_cast<uint64_t>(total);
  }
  return std::nullopt;
}

}  // namespace ranktap::collector

// Numbers as people read them: in cells, titles, notes and findings alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ranktap::collector {

std::string FormatNs(int64_t ns);              // "1.234 s", "56.78 ms", "9.012 us", "345 ns"
std::string FormatCount(int64_t count);        // "1,234,567"
std::string FormatBytes(uint64_t bytes);       // "1.5 MiB"
std::string FormatSignedBytes(int64_t bytes);  // "-1.5 MiB"
std::string FormatFlops(int64_t count);        // "6.607 T"; below a million "65,536"
std::string FormatPercent(double percent);     // "17.0 %"
std::string FormatShare(int64_t part, int64_t whole);        // the same of two numbers
std::string Counted(size_t count, const std::string& what);  // "1 step", "2 steps"

// "1.5", "1.5s", "200ms", "5us", "80ns", "2m", "1h", "30d" -> nanoseconds; a bare number is seconds.
std::optional<uint64_t> ParseDuration(std::string_view text);

}  // namespace ranktap::collector

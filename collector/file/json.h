// JSON texts to values and back. nlohmann's parser and writer are compiled in one file: each file
// that called them compiled its own, for 1 to 2 s.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ranktap::collector {

// Values that nest deeper are refused: nlohmann copies and writes values recursively, and a million
// brackets end the process.
inline constexpr size_t kDeepestJson = 256;

// `is_discarded()` where the text is not JSON or nests too deep; never throws for what a text
// holds.
nlohmann::json ParseJson(std::string_view text);

bool IsJson(std::string_view text);

// `indent` spaces a level, or one line where it is -1. Bytes that are no UTF-8 become U+FFFD.
std::string WriteJson(const nlohmann::json& value, int indent = -1);
std::string WriteJson(const nlohmann::ordered_json& value, int indent = -1);

}  // namespace ranktap::collector

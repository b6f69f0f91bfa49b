// Pickles as Python writes them (protocol 4, few of its opcodes), for tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ranktap::collector::pickled {

inline std::string Int(int64_t value) {
  std::string bytes = "\x8a\x08";  // LONG1
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i));
  return bytes;
}
inline std::string Text(const std::string& text) {
  return "\x8c" + std::string(1, static_cast<char>(text.size())) + text + "\x94";  // memoised
}
inline std::string List(const std::vector<std::string>& items) {
  std::string bytes = "]\x94(";
  for (const std::string& item : items) bytes += item;
  return bytes + "e";
}
inline std::string Dict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string bytes = "}\x94(";
  for (const auto& [key, value] : items) bytes += Text(key) + value;
  return bytes + "u";
}
inline std::string File(const std::string& value) { return "\x80\x04" + value + "."; }

}  // namespace ranktap::collector::pickled

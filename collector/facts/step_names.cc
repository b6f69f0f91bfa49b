#include "collector/facts/step_names.h"

#include <cctype>
#include <charconv>

namespace ranktap::collector {

int64_t NumberIn(std::string_view name, int64_t otherwise) {
  size_t first = name.size();
  while (first > 0 && std::isdigit(static_cast<unsigned char>(name[first - 1])) != 0) --first;
  int64_t number = otherwise;
  std::from_chars(name.data() + first, name.data() + name.size(), number);
  return number;
}

std::string StepLikeName(std::string_view name) {
  while (!name.empty() &&
         (std::isdigit(static_cast<unsigned char>(name.back())) != 0 || name.back() == ' ' ||
          name.back() == '#' || name.back() == '_' || name.back() == ':' || name.back() == '=')) {
    name.remove_suffix(1);
  }
  std::string lower(name);
  for (char& byte : lower) byte = static_cast<char>(std::tolower(static_cast<uint8_t>(byte)));
  for (const std::string_view word : {"step", "iteration", "iter", "batch"}) {
    if (lower.ends_with(word) && lower.find("optim") == lower.npos) return std::string(name);
  }
  return "";
}

}  // namespace ranktap::collector

#include "collector/launch/resource_attributes.h"

#include <charconv>
#include <cstdlib>
#include <optional>

namespace ranktap::collector {
namespace {

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<std::string> Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    unsigned value = 0;
    const char* const after = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), after, value, 16);
    if (digits.size() != 2 || error != std::errc() || end != after) return std::nullopt;
    decoded += static_cast<char>(value);
    i += 2;
  }
  return decoded;
}

std::string_view Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

}  // namespace

std::map<std::string, std::string> ResourceAttributes(std::string_view attributes,
                                                      std::string_view service) {
  std::map<std::string, std::string> found;
  while (!attributes.empty()) {
    const size_t comma = attributes.find(',');
    const std::string_view pair = attributes.substr(0, comma);
    attributes = comma == std::string_view::npos ? "" : attributes.substr(comma + 1);
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view key = Trimmed(pair.substr(0, equals));
    const std::optional<std::string> value = Decoded(Trimmed(pair.substr(equals + 1)));
    if (!key.empty() && value) found[std::string(key)] = *value;
  }
  if (!service.empty()) found["service.name"] = service;
  return found;
}

std::map<std::string, std::string> ResourceAttributes() {
  return ResourceAttributes(Variable("OTEL_RESOURCE_ATTRIBUTES"), Variable("OTEL_SERVICE_NAME"));
}

}  // namespace ranktap::collector

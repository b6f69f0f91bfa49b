#include "collector/file/json.h"

#include <nlohmann/json.hpp>

namespace ranktap::collector {

using nlohmann::json;
using nlohmann::ordered_json;

namespace {

bool NestsTooDeep(std::string_view text) {
  size_t depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char byte = text[i];
    if (in_text) {
      if (byte == '\\') ++i;
      in_text = byte != '"';
    } else if (byte == '"') {
      in_text = true;
    } else if (byte == '[' || byte == '{') {
      if (++depth > kDeepestJson) return true;
    } else if ((byte == ']' || byte == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace

json ParseJson(std::string_view text) {
  if (NestsTooDeep(text)) return json(json::value_t::discarded);
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

bool IsJson(std::string_view text) { return !NestsTooDeep(text) && json::accept(text); }

std::string WriteJson(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::string WriteJson(const ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace ranktap::collector

#include "collector/file/json.h"

#include <nlohmann/json.hpp>

namespace ranktap::collector {

using nlohmann::json;
using nlohmann::ordered_json;

json ParseJson(std::string_view text) {
  return json::parse(text, nullptr, /*allow_exceptions=*/false);
}

bool IsJson(std::string_view text) { return json::accept(text); }

std::string WriteJson(const json& value, int indent) {
  return value.dump(indent, ' ', false, json::error_handler_t::replace);
}

std::string WriteJson(const ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace ranktap::collector

#include "collector/report/text/short_shapes.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <vector>

#include "collector/file/json.h"

namespace ranktap::collector {
namespace {

bool IsShape(const Json& value) {
  if (!value.is_array()) return false;
  for (const Json& size : value) {
    if (!size.is_number_integer()) return false;
  }
  return true;
}

std::string Shape(const Json& value) {
  std::string text;
  for (const Json& size : value) text += (text.empty() ? "" : "x") + WriteJson(size);
  return text.empty() ? "-" : text;
}

// Empty: it is no list of tensors.
std::string TensorList(const Json& value) {
  std::vector<std::string> shapes;
  for (const Json& shape : value) {
    if (!IsShape(shape)) return "";
    shapes.push_back(Shape(shape));
  }
  return fmt::format("[{}]", fmt::join(shapes, ", "));
}

}  // namespace

std::string ShortShapes(std::string_view text) {
  if (!text.starts_with("[[")) return std::string(text);
  const Json inputs = ParseJson(text);
  if (!inputs.is_array()) return std::string(text);
  std::vector<std::string> parts;
  for (const Json& input : inputs) {
    parts.push_back(IsShape(input) ? Shape(input) : input.is_array() ? TensorList(input) : "");
    if (parts.back().empty()) return std::string(text);
  }
  size_t at_end = 0;
  while (at_end < parts.size() && parts[parts.size() - 1 - at_end] == "-") ++at_end;
  if (at_end > 0 && at_end < parts.size()) {
    parts.resize(parts.size() - at_end);
    parts.push_back(fmt::format("+{}", at_end));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace ranktap::collector

#include "collector/export/graph/chakra_text.h"

#include <fmt/core.h>

#include <algorithm>

#include "collector/export/json_text.h"

namespace ranktap::collector {
namespace {

std::string ListOf(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (const uint32_t rank : ranks) text += fmt::format("{}{}", text.empty() ? "" : ", ", rank);
  return fmt::format("[{}]", text);
}

}  // namespace

chakra::AttributeProto* ChakraAttribute(const char* name, chakra::Node* node) {
  chakra::AttributeProto* const attribute = node->add_attr();
  attribute->set_name(name);
  return attribute;
}

std::string PythonText(std::string_view json) {
  if (json.empty()) return "[]";
  std::string text = SanitizedName(json);
  std::ranges::replace(text, '"', '\'');
  return text;
}

void WriteMessage(const google::protobuf::MessageLite& message, OutputFile* file) {
  const std::string bytes = message.SerializeAsString();
  std::string size;
  size_t rest = bytes.size();
  for (; rest >= 0x80; rest >>= 7) size += static_cast<char>((rest & 0x7f) | 0x80);
  size += static_cast<char>(rest);
  file->Write(size);
  file->Write(bytes);
}

std::string GroupsText(const GraphGroups::Members& members) {
  std::string text;
  for (const auto& [number, ranks] : members) {
    text += fmt::format("{}\"{}\": {}", text.empty() ? "" : ", ", number, ListOf(ranks));
  }
  return "{" + text + "}";
}

}  // namespace ranktap::collector

#include "collector/trace/operator_schemas.h"

#include <algorithm>

#include "collector/file/json.h"
#include "collector/trace/framework_ranges.h"
#include "collector/trace/marked_lines.h"
#include "proto/operator_values.h"

namespace ranktap::collector {
namespace {

// tagKind() of a value that an argument of this type has, where it is none of those that the agent
// tells apart; empty: it may be several.
std::string_view KindOf(std::string_view type) {
  while (type.ends_with('?')) type.remove_suffix(1);
  if (type.starts_with("__torch__.")) return "Object";
  if (type == "Generator") return "Generator";
  if (type == "Stream") return "Stream";
  if (type == "Storage") return "Storage";
  if (type == "complex") return "ComplexDouble";
  if (type.starts_with("Dict(")) return "GenericDict";
  if (type.starts_with('(')) return "Tuple";
  return {};
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// The type of "Tensor(a!) self", "int[2] stride=[1, 1]".
std::string TypeOf(std::string_view argument) {
  int depth = 0;
  for (size_t i = 0; i < argument.size(); ++i) {
    const char c = argument[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == ' ' && depth == 0) return std::string(argument.substr(0, i));
  }
  return std::string(argument);
}

}  // namespace

std::vector<std::string> ArgumentTypes(std::string_view schema) {
  std::vector<std::string> types;
  const size_t open = schema.find('(');
  if (open == std::string_view::npos) return types;
  int depth = 0;
  bool in_text = false;
  size_t begin = open + 1;
  const auto end_argument = [&](size_t end) {
    const std::string_view argument = Trimmed(schema.substr(begin, end - begin));
    if (!argument.empty() && argument != "*" && argument != "...")
      types.push_back(TypeOf(argument));
    begin = end + 1;
  };
  for (size_t i = open + 1; i < schema.size(); ++i) {
    const char c = schema[i];
    if (c == '"') in_text = !in_text;
    if (in_text) continue;
    if (c == ')' && depth == 0) {
      end_argument(i);
      break;
    }
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == ',' && depth == 0) end_argument(i);
  }
  return types;
}

OperatorSchemas::OperatorSchemas(const Trace& trace) {
  for (const std::string_view line : MarkedLines(trace, kOperatorDomain, proto::kSchemasMark)) {
    const Json row = ParseJson(line);
    if (!row.is_array() || row.size() != 3 ||
        !std::all_of(row.begin(), row.end(), [](const auto& cell) { return cell.is_string(); })) {
      continue;
    }
    std::vector<Schema>& known = schemas_[row[0].get<std::string>()];
    Schema schema{.overload = row[1].get<std::string>(), .text = row[2].get<std::string>()};
    const bool is_new = std::none_of(known.begin(), known.end(), [&](const Schema& other) {
      return other.overload == schema.overload;
    });
    if (!is_new) continue;
    schema.types = ArgumentTypes(schema.text);
    known.push_back(std::move(schema));
  }
}

const OperatorSchemas::Schema* OperatorSchemas::Find(std::string_view name,
                                                     const RecordedValues& inputs) const {
  const auto found = schemas_.find(name);
  if (found == schemas_.end()) return nullptr;
  if (!inputs.knows_overload) return found->second.size() == 1 ? &found->second.front() : nullptr;
  for (const Schema& schema : found->second) {
    if (schema.overload == inputs.overload) return &schema;
  }
  return nullptr;
}

std::string OperatorSchemas::Of(std::string_view name, const RecordedValues& inputs) const {
  const Schema* const schema = Find(name, inputs);
  return schema == nullptr ? std::string() : schema->text;
}

void OperatorSchemas::Saw(std::string_view name, const RecordedValues& inputs) {
  const Schema* const schema = Find(name, inputs);
  if (schema == nullptr || schema->types.size() != inputs.values.size()) return;
  for (size_t i = 0; i < inputs.values.size(); ++i) {
    const TraceValue& value = inputs.values[i];
    if (value.kind != TraceValue::Kind::kOther) continue;
    const std::string_view kind = KindOf(schema->types[i]);
    if (kind.empty()) continue;
    const auto [known, is_new] = kinds_.try_emplace(value.integer, kind);
    if (!is_new && known->second != kind) known->second.clear();
  }
}

void OperatorSchemas::LearnKinds() {
  std::erase_if(kinds_, [](const auto& kind) { return kind.second.empty(); });
}

void OperatorSchemas::NameKind(TraceValue* value) const {
  for (TraceValue& element : value->elements) NameKind(&element);
  if (value->kind != TraceValue::Kind::kOther) return;
  const auto known = kinds_.find(value->integer);
  if (known != kinds_.end()) value->type = known->second;
}

}  // namespace ranktap::collector

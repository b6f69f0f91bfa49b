#include "collector/import/inductor/fx_graph.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace ranktap::collector {
namespace {

bool IsWordCharacter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

std::string_view WordAt(std::string_view text, size_t from = 0) {
  size_t end = from;
  while (end < text.size() && IsWordCharacter(text[end])) ++end;
  return text.substr(from, end - from);
}

std::string_view Stripped(std::string_view text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '#')) text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "[32, s0]" of "f32[32, s0][s0, 1]cuda:0".
std::string ShapeOf(std::string_view annotation) {
  const size_t from = annotation.find('[');
  const size_t to = annotation.find(']', from);
  if (from == std::string_view::npos || to == std::string_view::npos) return {};
  return std::string(annotation.substr(from, to - from + 1));
}

// Up to the bracket that closes `open`, which is before the text.
std::string_view Inside(std::string_view text) {
  int depth = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '[') ++depth;
    if ((text[i] == ')' || text[i] == ']') && --depth == 0) return text.substr(0, i);
  }
  return text;
}

std::vector<std::string_view> ArgumentsOf(std::string_view list) {
  std::vector<std::string_view> arguments;
  int depth = 0;
  size_t from = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && depth == 0)) {
      const std::string_view argument = Stripped(list.substr(from, i - from));
      if (!argument.empty()) arguments.push_back(argument);
      from = i + 1;
    } else {
      depth += list[i] == '(' || list[i] == '[' ? 1 : list[i] == ')' || list[i] == ']' ? -1 : 0;
    }
  }
  return arguments;
}

// nullptr: the argument is no node.
const FusedOperator* NodeIn(std::string_view argument, const FxNodes& nodes) {
  if (argument.starts_with('%')) argument.remove_prefix(1);
  const auto found = nodes.find(argument);
  return found == nodes.end() ? nullptr : &found->second;
}

// Shapes and values as an operator's inputs have them. No shapes where one is not known.
void TakeArguments(std::string_view list, const FxNodes& nodes, FusedOperator* op) {
  std::string shapes, values;
  bool all_known = true;
  for (const std::string_view argument : ArgumentsOf(list)) {
    const FusedOperator* const node = NodeIn(argument, nodes);
    const bool is_named = argument.starts_with('%') && node == nullptr;
    if (is_named || (node != nullptr && node->output.empty())) all_known = false;
    shapes += (shapes.empty() ? "" : ", ") + (node == nullptr ? "[]" : node->output);
    std::string value(node == nullptr ? argument : "");
    std::erase(value, '"');
    values += (values.empty() ? "\"" : ", \"") + value + '"';
  }
  if (!all_known) return;
  op->shapes = "[" + shapes + "]";
  op->values = "[" + values + "]";
}

// "aten::mul" of "torch.ops.aten.mul.Tensor(...)"; empty: no operator.
std::string OperatorName(std::string_view target) {
  constexpr std::string_view kOps = "torch.ops.";
  if (!target.starts_with(kOps)) return {};
  const std::string_view space = WordAt(target, kOps.size());
  const size_t at = kOps.size() + space.size();
  const std::string_view name = at < target.size() ? WordAt(target, at + 1) : std::string_view();
  return space.empty() || name.empty() ? std::string()
                                       : std::string(space) + "::" + std::string(name);
}

// "# File: net.py:9 in forward, code: ..." -> "net.py(9): forward"
bool TakeLine(std::string_view text, std::string* line) {
  size_t from = text.find("File: ");
  if (from == std::string_view::npos) return false;
  from += 6;
  const size_t in = text.find(" in ", from);
  const size_t colon = text.rfind(':', in);
  if (in == std::string_view::npos || colon == std::string_view::npos || colon < from) return true;
  const size_t end = std::min(text.find(',', in), text.size());
  *line = std::string(text.substr(from, colon - from)) + "(" +
          std::string(text.substr(colon + 1, in - colon - 1)) +
          "): " + std::string(text.substr(in + 4, end - in - 4));
  return true;
}

// The signature of forward() names shapes of what the graph takes.
void TakePlaceholders(std::string_view text, FxNodes* nodes) {
  for (size_t at = text.find(": \""); at != std::string_view::npos;
       at = text.find(": \"", at + 1)) {
    size_t from = at;
    while (from > 0 && IsWordCharacter(text[from - 1])) --from;
    const std::string_view annotation = text.substr(at + 3, text.find('"', at + 3) - at - 3);
    (*nodes)[std::string(text.substr(from, at - from))].output = ShapeOf(annotation);
  }
}

}  // namespace

std::string_view FxNodeOf(std::string_view text) {
  text = Stripped(text);
  const bool is_formatted = text.starts_with('%');
  if (is_formatted) text.remove_prefix(1);
  const std::string_view name = WordAt(text);
  const std::string_view after = text.substr(name.size());
  const bool makes = is_formatted ? after.starts_with(" : ")
                                  : after.starts_with(": \"") || after.starts_with(" = torch.ops.");
  return makes ? name : std::string_view();
}

void ReadFxLine(std::string_view text, std::string* line, FxNodes* nodes) {
  text = Stripped(text);
  if (TakeLine(text, line)) return;
  if (text.starts_with("def forward(")) return TakePlaceholders(text, nodes);
  const std::string_view name = FxNodeOf(text);
  if (name.empty()) return;
  FusedOperator op{.line = *line};
  const size_t target = text.find("torch.ops.");
  const size_t quote = std::min(text.find('"'), target);
  if (quote < target) op.output = ShapeOf(text.substr(quote, text.find('"', quote + 1) - quote));
  if (target != std::string_view::npos) {
    op.name = OperatorName(text.substr(target));
    const size_t list = text.find("(args = (", target);
    const size_t call = text.find('(', target);
    const size_t from = list != std::string_view::npos ? list + 9
                        : call == text.npos            ? call
                                                       : call + 1;
    if (from != std::string_view::npos) TakeArguments(Inside(text.substr(from)), *nodes, &op);
  }
  (*nodes)[std::string(name)] = std::move(op);
}

}  // namespace ranktap::collector

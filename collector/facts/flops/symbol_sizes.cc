#include "collector/facts/flops/symbol_sizes.h"

#include <cctype>
#include <charconv>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collector/facts/flops/op_inputs.h"

namespace ranktap::collector {
namespace {

using Symbols = std::map<std::string, int64_t, std::less<>>;

bool IsName(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  for (const char c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// A product of numbers and known symbols; sums and divisions stay unknown.
std::optional<int64_t> SizeOf(std::string_view text, const Symbols& symbols) {
  Dims factors;
  while (true) {
    const size_t end = std::min(text.find('*'), text.size());
    const std::string_view factor = Trimmed(text.substr(0, end));
    if (const auto known = symbols.find(factor); known != symbols.end()) {
      factors.push_back(known->second);
    } else {
      int64_t value = 0;
      const auto [rest, error] =
          std::from_chars(factor.data(), factor.data() + factor.size(), value);
      if (error != std::errc() || rest != factor.data() + factor.size() || value < 0) return {};
      factors.push_back(value);
    }
    if (end == text.size()) return Product(factors);
    text.remove_prefix(end + 1);
  }
}

// The sizes of each shape of "[[s0, 64], []]". A list of tensors has none.
std::vector<std::vector<std::string_view>> ShapesIn(std::string_view text) {
  std::vector<std::vector<std::string_view>> shapes;
  int depth = 0;
  size_t from = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') {
      if (++depth == 2) shapes.emplace_back();
      from = i + 1;
    } else if (text[i] == ',' || text[i] == ']') {
      const std::string_view size = Trimmed(text.substr(from, i - from));
      if (depth == 2 && !size.empty()) shapes.back().push_back(size);
      if (text[i] == ']') --depth;
      from = i + 1;
    }
  }
  return shapes;
}

// nullopt: some size is not known. Lists keep their brackets.
std::optional<std::string> InNumbers(std::string_view text, const Symbols& symbols) {
  std::string numbers;
  size_t from = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != '[' && text[i] != ']' && text[i] != ',') continue;
    const std::string_view size = Trimmed(text.substr(from, i - from));
    if (!size.empty()) {
      const std::optional<int64_t> value = SizeOf(size, symbols);
      if (!value) return std::nullopt;
      numbers += std::to_string(*value);
    }
    if (i < text.size()) numbers += text[i];
    if (i < text.size() && text[i] == ',') numbers += ' ';
    from = i + 1;
  }
  return numbers;
}

bool Bind(std::string_view arguments, std::string_view recorded, Symbols* symbols) {
  const auto known = ShapesIn(arguments);
  const OpInputs inputs(recorded, "");
  std::vector<std::pair<std::string_view, int64_t>> sizes;
  for (size_t i = 0; i < known.size() && i < inputs.shapes.size(); ++i) {
    // A number, a scalar, or a buffer whose sizes the file does not say.
    if (known[i].empty() || inputs.shapes[i].empty()) continue;
    if (known[i].size() != inputs.shapes[i].size()) return false;
    for (size_t d = 0; d < known[i].size(); ++d) {
      sizes.emplace_back(known[i][d], inputs.shapes[i][d]);
      if (IsName(known[i][d])) symbols->emplace(known[i][d], inputs.shapes[i][d]);
    }
  }
  for (const auto& [text, size] : sizes) {
    const std::optional<int64_t> value = SizeOf(text, *symbols);
    if (value && *value != size) return false;
  }
  return true;
}

}  // namespace

std::optional<GeneratedKernel> WithSizes(const GeneratedKernel& kernel, std::string_view shapes) {
  Symbols symbols;
  if (!Bind(kernel.arguments, shapes, &symbols)) return std::nullopt;
  GeneratedKernel sized = kernel;
  for (FusedOperator& op : sized.operators) {
    const auto inputs = InNumbers(op.shapes, symbols), output = InNumbers(op.output, symbols);
    op.shapes = inputs.value_or("");
    op.output = output.value_or("");
  }
  return sized;
}

}  // namespace ranktap::collector

#include "collector/facts/flops/op_inputs.h"

#include <algorithm>
#include <charconv>

namespace ranktap::collector {
namespace {

Dims IntegersOf(std::string_view text) {
  Dims dims;
  for (const char* at = text.data(); at < text.data() + text.size();) {
    int64_t value = 0;
    const auto [after, error] = std::from_chars(at, text.data() + text.size(), value);
    if (error == std::errc()) dims.push_back(value);
    at = error == std::errc() ? after : at + 1;
  }
  return dims;
}

// The elements of the outermost list: "[[8, 16], []]" -> "[8, 16]", "[]".
std::vector<std::string_view> Elements(std::string_view list) {
  std::vector<std::string_view> elements;
  if (list.size() <= 2) return elements;
  list = list.substr(1, list.size() - 2);
  int depth = 0;
  bool quoted = false;
  size_t from = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && depth == 0 && !quoted)) {
      std::string_view element = list.substr(from, i - from);
      while (element.starts_with(' ')) element.remove_prefix(1);
      elements.push_back(element);
      from = i + 1;
    } else if (list[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      depth += list[i] == '[' ? 1 : list[i] == ']' ? -1 : 0;
    }
  }
  return elements;
}

}  // namespace

OpInputs::OpInputs(std::string_view shapes_text, std::string_view values_text) {
  for (const std::string_view element : Elements(shapes_text)) {
    // A list of tensors nests deeper.
    const bool is_list =
        element.substr(std::min<size_t>(1, element.size())).find('[') != std::string_view::npos;
    shapes.push_back(is_list ? Dims{} : IntegersOf(element));
    lists_.push_back(is_list ? element : std::string_view());
  }
  for (std::string_view element : Elements(values_text)) {
    if (element.size() >= 2 && element.front() == '"') {
      element = element.substr(1, element.size() - 2);
    }
    values.push_back(element);
  }
}

const Dims* OpInputs::Tensor(size_t index, size_t least_rank) const {
  return index < shapes.size() && shapes[index].size() >= least_rank ? &shapes[index] : nullptr;
}

std::vector<Dims> OpInputs::Tensors(size_t index) const {
  std::vector<Dims> tensors;
  if (index >= lists_.size()) return tensors;
  for (const std::string_view element : Elements(lists_[index])) {
    tensors.push_back(IntegersOf(element));
  }
  return tensors;
}

Dims OpInputs::Integers(size_t index) const {
  return index < values.size() ? IntegersOf(values[index]) : Dims{};
}

std::vector<double> OpInputs::Reals(size_t index) const {
  std::vector<double> reals;
  if (index >= values.size()) return reals;
  for (const std::string_view element : Elements(values[index])) {
    double value = 0;
    std::from_chars(element.data(), element.data() + element.size(), value);
    reals.push_back(value);
  }
  return reals;
}

bool OpInputs::Flag(size_t index, size_t element, bool otherwise) const {
  if (index >= values.size() || values[index].empty()) return otherwise;
  std::string_view text = values[index];
  if (text.front() == '[') {
    const std::vector<std::string_view> elements = Elements(text);
    if (element >= elements.size()) return otherwise;
    text = elements[element];
  }
  return text.starts_with('T') || text.starts_with('t') || text == "1";
}

int64_t Product(const Dims& dims, size_t from) {
  int64_t product = 1;
  for (size_t i = from; i < dims.size(); ++i) {
    if (dims[i] < 0 || __builtin_mul_overflow(product, dims[i], &product)) return 0;
  }
  return product;
}

}  // namespace ranktap::collector

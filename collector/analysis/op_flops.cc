#include "collector/analysis/op_flops.h"

#include <charconv>
#include <limits>
#include <string>
#include <vector>

namespace ranktap::collector {
namespace {

using Dims = std::vector<int64_t>;

Dims Integers(std::string_view text) {
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
  if (list.size() < 2) return elements;
  list = list.substr(1, list.size() - 2);
  int depth = 0;
  bool quoted = false;
  size_t from = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && depth == 0 && !quoted)) {
      elements.push_back(list.substr(from, i - from));
      from = i + 1;
    } else if (list[i] == '"') {
      quoted = !quoted;
    } else if (!quoted) {
      depth += list[i] == '[' ? 1 : list[i] == ']' ? -1 : 0;
    }
  }
  return elements;
}

int64_t Product(const Dims& dims) {
  double product = 1;
  for (const int64_t dim : dims) product *= static_cast<double>(dim);
  return product >= 0 && product < 9e18 ? static_cast<int64_t>(product) : 0;
}

// Of two matrices or batches of them: all dimensions, the common one once.
int64_t MatrixFlops(const Dims& a, const Dims& b, bool batched) {
  const size_t rank = batched ? 3 : 2;
  if (a.size() != rank || b.size() != rank) return 0;
  return 2 * Product(a) * b.back();
}

int64_t ConvolutionFlops(const std::vector<Dims>& shapes,
                         const std::vector<std::string_view>& values) {
  if (shapes.size() < 2 || values.size() < 7 || shapes[0].size() != 4 || shapes[1].size() != 4) {
    return 0;
  }
  const Dims stride = Integers(values[3]), padding = Integers(values[4]),
             dilation = Integers(values[5]), groups = Integers(values[6]);
  if (stride.size() != 2 || padding.size() != 2 || dilation.size() != 2 || groups.size() != 1 ||
      stride[0] == 0 || stride[1] == 0 || groups[0] == 0) {
    return 0;
  }
  const Dims &input = shapes[0], &kernel = shapes[1];
  const auto out = [&](size_t axis) {
    return (input[2 + axis] + 2 * padding[axis] - dilation[axis] * (kernel[2 + axis] - 1) - 1) /
               stride[axis] +
           1;
  };
  return 2 * Product({input[0], out(0), out(1), kernel[2], kernel[3], input[1], kernel[0]}) /
         groups[0];
}

}  // namespace

int64_t OpFlops(std::string_view name, std::string_view shapes, std::string_view values) {
  if (!name.starts_with("aten::") || shapes.empty()) return 0;
  name.remove_prefix(6);
  const bool is_known = name == "conv2d" || name == "mm" || name == "addmm" || name == "bmm" ||
                        name == "baddbmm" || name == "mul" || name == "add";
  if (!is_known) return 0;
  std::vector<Dims> dims;
  for (const std::string_view element : Elements(shapes)) dims.push_back(Integers(element));
  if (name == "conv2d") return ConvolutionFlops(dims, Elements(values));
  if (name == "mul" || name == "add") return dims.empty() || dims[0].empty() ? 0 : Product(dims[0]);
  const size_t first = name == "addmm" || name == "baddbmm" ? 1 : 0;
  if (dims.size() < first + 2) return 0;
  return MatrixFlops(dims[first], dims[first + 1], name == "bmm" || name == "baddbmm");
}

}  // namespace ranktap::collector

#include "collector/facts/roofline/list_types.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <unordered_map>

#include "collector/facts/framework/model_tree.h"
#include "collector/trace/symbol_name.h"

namespace ranktap::collector {
namespace {

bool Has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// "CatArrayBatchedCopy<at::native::OpaqueType<4u>, ...>"
int64_t OpaqueBytes(std::string_view name) {
  constexpr std::string_view kOpaque = "OpaqueType<";
  const size_t at = name.find(kOpaque);
  if (at == name.npos) return 0;
  int64_t bytes = 0;
  const char* const digits = name.data() + at + kOpaque.size();
  std::from_chars(digits, name.data() + name.size(), bytes);
  return bytes;
}

struct NamedType {
  std::string_view name;
  int64_t bytes;
};
constexpr NamedType kTypes[] = {{"c10::BFloat16", 2}, {"c10::Half", 2},     {"float", 4},
                                {"double", 8},        {"c10::Float8", 1},   {"long", 8},
                                {"int", 4},           {"unsigned char", 1}, {"bool", 1}};

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

// The size of the functor's first argument: "BinaryOpScalarFunctor<float, 2, 1, 1>".
int64_t FunctorBytes(std::string_view name) {
  const size_t functor = name.find("Functor<");
  if (functor == name.npos) return 0;
  std::string_view arguments = name.substr(functor + 8);
  arguments = arguments.substr(0, arguments.find('>'));
  int64_t first = 0;
  for (const NamedType& type : kTypes) {
    if (!arguments.starts_with(type.name)) continue;
    const size_t end = type.name.size();
    if (end < arguments.size() && IsLetter(arguments[end])) continue;
    first = type.bytes;
  }
  // Nobody knows which list is which of several types: "CopyFunctor<float, c10::Half, ...>".
  for (const NamedType& type : kTypes) {
    if (type.bytes == first) continue;
    if (Has(arguments, ", " + std::string(type.name))) return 0;
  }
  return first;
}

class ListOperators {
 public:
  explicit ListOperators(const Trace& trace)
      : trace_(trace),
        bytes_(trace.operators.size(), 0),
        of_kernel_(trace.dictionary.strings() + 1) {
    const Operators& ops = trace.operators;
    std::unordered_map<uint32_t, bool> has_list;  // by text of types
    is_list_.resize(ops.size());
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto [at, is_new] = has_list.try_emplace(ops.types.At(i), false);
      if (is_new) at->second = Has(trace.dictionary.String(ops.types.At(i)), "TensorList");
      is_list_[i] = at->second;
    }
  }

  void AskKernels() {
    const Kernels& kernels = trace_.kernels;
    for (size_t i = 0; i < kernels.size(); ++i) {
      uint32_t op = kernels.op.At(i);
      if (op-- == 0 || !HasListAround(op)) continue;
      const int64_t bytes = OfName(kernels.name[i]);
      if (bytes == 0) continue;
      for (; op != kNone; op = trace_.operators.parent[op]) {
        if (is_list_[op] && bytes_[op] == 0) bytes_[op] = bytes;
      }
    }
  }

  void AskModel() {
    const int64_t bytes = ModelBytes();
    for (size_t i = 0; bytes > 0 && i < bytes_.size(); ++i) {
      if (!is_list_[i] || bytes_[i] != 0) continue;
      const std::string_view name = trace_.dictionary.String(trace_.operators.name[i]);
      if (name.starts_with("aten::_fused_")) bytes_[i] = bytes;
    }
  }

  std::vector<int64_t> Take() { return std::move(bytes_); }

 private:
  bool HasListAround(uint32_t op) const {
    for (; op != kNone; op = trace_.operators.parent[op]) {
      if (is_list_[op]) return true;
    }
    return false;
  }

  int64_t OfName(uint32_t name) {
    int64_t& known = of_kernel_[std::min<size_t>(name, of_kernel_.size() - 1)];
    if (known == 0) {
      known = 1 + ListElementBytes(ReadableKernelName(trace_.dictionary.String(name)));
    }
    return known - 1;
  }

  // Steps of an optimizer count in floats of their own: they are no tensors of lists of parameters.
  int64_t ModelBytes() const {
    std::set<int64_t> sizes;
    for (const ModelModule& module : DescribeModel(trace_)) {
      for (const Part part : {Part::kParameters, Part::kGradients, Part::kStates}) {
        for (const auto& [dtype, amount] : module.own[static_cast<size_t>(part)]) {
          if (amount.elements > 0) sizes.insert(amount.bytes / amount.elements);
        }
      }
    }
    return sizes.size() == 1 ? *sizes.begin() : 0;
  }

  const Trace& trace_;
  std::vector<bool> is_list_;       // by row
  std::vector<int64_t> bytes_;      // by row
  std::vector<int64_t> of_kernel_;  // by name, 1 more; 0: not asked
};

}  // namespace

int64_t ListElementBytes(std::string_view kernel) {
  if (const int64_t bytes = OpaqueBytes(kernel); bytes > 0) return bytes;
  return FunctorBytes(kernel);
}

std::vector<int64_t> ListElementBytes(const Trace& trace) {
  ListOperators lists(trace);
  lists.AskKernels();
  lists.AskModel();
  return lists.Take();
}

}  // namespace ranktap::collector

#include "collector/trace/execution_collective.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ranktap::collector {
namespace {

using Kind = TraceValue::Kind;
using Values = std::vector<TraceValue>;

constexpr size_t kBeforeName = 2;  // the group and the rank in it
// Splits of input and output, the first rank, the stride between ranks, the size of the group.
constexpr size_t kAfterName = 5;

// The first tensor's; empty: there is none.
std::string TypeIn(const TraceValue& value) {
  if (value.kind == Kind::kTensor) return value.type;
  for (const TraceValue& element : value.elements) {
    if (std::string type = TypeIn(element); !type.empty()) return type;
  }
  return {};
}

uint64_t ElementsIn(const TraceValue& value) {
  uint64_t count = 0;
  if (value.kind == Kind::kTensor) {
    count = 1;
    for (const int64_t size : value.sizes) count *= static_cast<uint64_t>(size);
  }
  for (const TraceValue& element : value.elements) count += ElementsIn(element);
  return count;
}

std::vector<int64_t> Integers(const TraceValue& list) {
  std::vector<int64_t> numbers;
  for (const TraceValue& element : list.elements) numbers.push_back(element.integer);
  return numbers;
}

bool AreParameters(const Values& inputs, size_t name) {
  const auto is_list = [&](size_t at) { return inputs[at].kind == Kind::kList; };
  const auto is_number = [&](size_t at) { return inputs[at].kind == Kind::kInteger; };
  return name >= kBeforeName && inputs.size() > name + kAfterName && is_list(name - kBeforeName) &&
         is_number(name - 1) && is_list(name + 1) && is_list(name + 2) && is_number(name + 3) &&
         is_number(name + 4) && is_number(name + 5);
}

void SetGroup(const TraceValue& group, ExecutionCollective* found) {
  if (!group.elements.empty()) found->pg_name = group.elements[0].text;
  if (group.elements.size() > 1) found->pg_desc = group.elements[1].text;
}

// What barrier() and wait() give has no tensors and, to PyTorch, bytes.
void SetElements(const Values& inputs, const Values& outputs, ExecutionCollective* found) {
  found->dtype = "Byte";
  const bool has_tensors =
      inputs.front().type == "GenericList" || inputs.front().kind == Kind::kTensor;
  if (!has_tensors) return;
  std::string type = TypeIn(inputs.front());
  if (type.empty() && !outputs.empty()) type = TypeIn(outputs.front());
  if (!type.empty()) found->dtype = NameOfDtype(type);
  found->in_msg_nelems = ElementsIn(inputs.front());
  if (!outputs.empty()) found->out_msg_nelems = ElementsIn(outputs.front());
  // Ranks that are not the root have an empty list on one side.
  const auto ranks = static_cast<uint64_t>(std::max<int64_t>(found->pg_size, 0));
  if (found->collective_name == "gather") found->out_msg_nelems = found->in_msg_nelems * ranks;
  if (found->collective_name == "scatter") found->in_msg_nelems = found->out_msg_nelems * ranks;
}

}  // namespace

std::string NameOfDtype(std::string_view type) {
  static constexpr auto kNames = std::to_array<std::pair<std::string_view, std::string_view>>({
      {"unsigned char", "Byte"},
      {"signed char", "Char"},
      {"short int", "Short"},
      {"int", "Int"},
      {"long int", "Long"},
      {"float", "Float"},
      {"double", "Double"},
      {"bool", "Bool"},
      {"c10::complex<c10::Half>", "ComplexHalf"},
      {"c10::complex<float>", "ComplexFloat"},
      {"c10::complex<double>", "ComplexDouble"},
      {"short unsigned int", "UInt16"},
      {"unsigned int", "UInt32"},
      {"long unsigned int", "UInt64"},
  });
  for (const auto& [meta, name] : kNames) {
    if (meta == type) return std::string(name);
  }
  constexpr std::string_view kNamespace = "c10::";  // c10::BFloat16
  if (type.starts_with(kNamespace)) type.remove_prefix(kNamespace.size());
  return std::string(type);
}

std::optional<ExecutionCollective> ReadCollective(const std::vector<TraceValue>& inputs,
                                                  const std::vector<TraceValue>& outputs) {
  const auto text = std::find_if(inputs.begin(), inputs.end(),
                                 [](const auto& value) { return value.kind == Kind::kText; });
  const auto name = static_cast<size_t>(text - inputs.begin());
  if (text == inputs.end() || !AreParameters(inputs, name)) return std::nullopt;
  ExecutionCollective found;
  found.collective_name = text->text;
  SetGroup(inputs[name - kBeforeName], &found);
  found.in_split_size = Integers(inputs[name + 1]);
  found.out_split_size = Integers(inputs[name + 2]);
  found.global_rank_start = inputs[name + 3].integer;
  found.global_rank_stride = inputs[name + 4].integer;
  found.pg_size = inputs[name + 5].integer;
  const size_t last = name + kAfterName + 1;
  if (inputs.size() > last && inputs[last].kind == Kind::kFlag) {
    found.is_asynchronized_op = inputs[last].integer != 0;
  }
  SetElements(inputs, outputs, &found);
  return found;
}

}  // namespace ranktap::collector

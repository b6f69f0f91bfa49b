#include "collector/facts/collective_types.h"

#include <algorithm>
#include <cctype>

#include "collector/facts/communication_kernels.h"
#include "collector/facts/flops/dtype_sizes.h"

namespace ranktap::collector {
namespace {

std::string Letters(std::string_view text) {
  std::string letters;
  for (const char byte : text) {
    if (std::isalpha(static_cast<unsigned char>(byte)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(byte)));
    }
  }
  return letters;
}

int64_t BytesOf(uint64_t elements, std::string_view dtype) {
  constexpr uint64_t kMost = uint64_t{1} << 50;
  return elements > kMost ? 0 : static_cast<int64_t>(elements) * BytesPerElement(dtype);
}

}  // namespace

std::string CommunicationType(std::string_view name) {
  const std::string letters = Letters(name);
  if (letters.find("crossdevicereduce") != letters.npos) return "allreduce";  // vLLM
  if (name.find("deep_ep::") != name.npos &&
      (letters.find("dispatch") != letters.npos || letters.find("combine") != letters.npos)) {
    return "alltoall";
  }
  for (const std::string_view type :
       {"allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "sendrecv", "barrier",
        "reduce", "gather", "scatter", "send", "recv"}) {
    if (letters.find(type) != letters.npos) return std::string(type);
  }
  return "";
}

std::string CollectiveTypeOf(std::string_view name) {
  std::string type = CommunicationType(name);
  return type.empty() ? "other" : type;
}

std::string_view OperatorThatCommunicates(const Trace& trace, uint32_t kernel) {
  for (uint32_t op = trace.kernels.op.At(kernel); op != 0;) {
    const std::string_view name = trace.dictionary.String(trace.operators.name[op - 1]);
    if (IsCommunicationOperator(name) && !CommunicationType(name).empty()) return name;
    const uint32_t parent = trace.operators.parent[op - 1];
    op = parent == kNone ? 0 : parent + 1;
  }
  return "";
}

bool NamesGroup(const Collective* described) {
  return described != nullptr && !(described->group.empty() && described->group_ranks.empty());
}

const Collective* DescriptionOf(const Trace& trace, uint32_t kernel) {
  uint32_t index = trace.kernels.collective.At(kernel);
  uint32_t op = trace.kernels.op.At(kernel);
  while (index == 0 && op != 0) {
    index = trace.operators.collective.At(op - 1);
    const uint32_t parent = trace.operators.parent[op - 1];
    op = parent == kNone ? 0 : parent + 1;
  }
  return index == 0 || index > trace.collectives.size() ? nullptr : &trace.collectives[index - 1];
}

std::string TypeOfCollective(const Trace& trace, const DeviceSpan& span) {
  const Collective* const described = DescriptionOf(trace, span.row);
  const std::string_view said = described != nullptr && !described->name.empty()
                                    ? std::string_view(described->name)
                                    : OperatorThatCommunicates(trace, span.row);
  return CollectiveTypeOf(said.empty() ? trace.dictionary.String(span.name) : said);
}

uint32_t GroupSizeOf(const Collective* described) {
  return NamesGroup(described) ? described->group_size : 0;
}

int64_t MessageBytes(const Collective& call) {
  return BytesOf(call.in_elements != 0 ? call.in_elements : call.out_elements, call.dtype);
}

int64_t FullBufferBytes(const std::string& type, const Collective& call) {
  if (type != "allgather" && type != "reducescatter") return MessageBytes(call);
  return BytesOf(std::max(call.in_elements, call.out_elements), call.dtype);
}

double BusFactor(const std::string& type, uint32_t n) {
  if (n < 2) return 1;
  const double others = static_cast<double>(n - 1) / n;
  if (type == "allreduce") return 2 * others;
  for (const char* const name : {"allgather", "reducescatter", "alltoall", "gather", "scatter"}) {
    if (type == name) return others;
  }
  return 1;
}

}  // namespace ranktap::collector

#include "collector/facts/communication_kernels.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace ranktap::collector {
namespace {

constexpr std::string_view kBeginnings[] = {"nccl", "rccl", "hccl"};
// In lower case.
constexpr std::string_view kParts[] = {
    "ncclkernel",
    "nccldevkernel",
    "nccldevfunc",
    "msccl",
    "nvshmem",
    "rocshmem",
    "deep_ep::intranode",
    "deep_ep::internode",  // deep_ep::layout computes
    "multimem_",
    "one_shot_all_reduce",
    "two_shot_all_reduce",
    "symm_mem",
    "cross_device_reduce",  // vLLM, SGLang, aiter
    "allreduce_prototype",  // vLLM's quick reduce
    "oneshotallreduce",
    "twoshotallreduce",
    "allreduce_fusion",  // TensorRT-LLM, FlashInfer
    "userbuffers",       // TransformerEngine
};
constexpr std::string_view kOperators[] = {
    "c10d::",
    "_c10d_functional::",
    "c10d_functional::",
    "record_param_comms",
    "nccl:",
    "symm_mem::",
    "_C_custom_ar::",
    "deep_ep::",
    "vllm::all_reduce",
    "vllm::all_gather",
    "vllm::reduce_scatter",
};

}  // namespace

bool IsCommunicationKernel(std::string_view name) {
  const auto begins = [name](std::string_view beginning) { return name.starts_with(beginning); };
  if (std::ranges::any_of(kBeginnings, begins)) return true;
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::ranges::any_of(
      kParts, [&lower](std::string_view part) { return lower.find(part) != lower.npos; });
}

bool IsCommunicationOperator(std::string_view name) {
  // symm_mem::fused_all_gather_matmul multiplies.
  return name.find("::fused_") == name.npos &&
         std::ranges::any_of(kOperators, [name](std::string_view beginning) {
           return name.starts_with(beginning);
         });
}

}  // namespace ranktap::collector

// The environment variables of the agent: one table. The agent's parser, `ranktap run --help` and
// docs/environment.md (scripts/gen_env_docs reads this file) are made from it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace ranktap::proto {

enum class EnvKind : uint8_t { kText, kFlag, kNumber, kLevel, kStacks, kTensors };

struct EnvVar {
  std::string_view name;
  EnvKind kind;
  std::string_view default_value;  // empty: none
  uint32_t min, max;               // of a number
  std::string_view help;
};

// clang-format off
inline constexpr auto kEnvVars = std::to_array<EnvVar>({
    {"RANKTAP_DISABLE", EnvKind::kFlag, "0", 0, 0,
     "1 keeps the agent out of the process, whatever else is set."},
    {"RANKTAP_SOCKET", EnvKind::kText, "", 0, 0,
     "The collector's socket. Without one nothing is captured."},
    {"RANKTAP_SPOOL", EnvKind::kText, "", 0, 0,
     "Directory for events while no collector answers; by default /var/tmp/ranktap-spool-UID."},
    {"RANKTAP_SPOOL_MIB", EnvKind::kNumber, "1024", 0, 1048576,
     "Most that one process puts there, MiB; 0: nothing."},
    {"RANKTAP_LEVEL", EnvKind::kLevel, "dormant", 0, 0,
     "First level: dormant, ranges, kernels or full."},
    {"RANKTAP_LOG", EnvKind::kText, "", 0, 0,
     "File for the agent's own messages; without one there are none."},
    {"RANKTAP_RANK", EnvKind::kNumber, "", 0, 0xfffffffe,
     "This process's rank, before anything a launcher says."},
    {"RANKTAP_RING_MIB", EnvKind::kNumber, "32", 4, 256,
     "Shared memory for events and names, MiB."},
    {"RANKTAP_CUPTI_BUFFERS_MIB", EnvKind::kNumber, "24", 2, 1024,
     "Memory lent to CUPTI, MiB."},
    {"RANKTAP_DEVICE_BUFFERS", EnvKind::kNumber, "16", 4, 250,
     "Most buffers of 3.2 MB that CUPTI may take of a GPU's memory, in each context; 250 is CUPTI's own limit. See docs/cupti.md."},
    {"RANKTAP_FLUSH_MS", EnvKind::kNumber, "1000", 10, 60000,
     "How often complete CUPTI buffers are asked for, ms."},
    {"RANKTAP_EXIT_MS", EnvKind::kNumber, "500", 0, 10000,
     "Longest wait for CUPTI's last records at exit, ms."},
    {"RANKTAP_CUPTI", EnvKind::kText, "", 0, 0,
     "Path of the libcupti to use, before any that is found."},
    {"RANKTAP_CUDA", EnvKind::kFlag, "1", 0, 0,
     "0 keeps CUPTI out: nothing of CUDA is recorded; what run --no-cuda sets."},
    {"RANKTAP_RETURN_MS", EnvKind::kNumber, "1000", 0, 600000,
     "How long after a profiler of the program has let CUPTI go we take it again, ms."},
    {"RANKTAP_DRIVER_LAUNCHES", EnvKind::kFlag, "0", 0, 0,
     "1 takes callbacks of launches from CUDA's driver API alone: half as many, and the trace names the driver's functions. To be measured; see docs/cupti.md."},
    {"RANKTAP_HARDWARE_EVENTS", EnvKind::kFlag, "0", 0, 0,
     "1 takes kernels' times by the hardware event system of Blackwell GPUs, from CUPTI 13.4 U1 on; the program's own profiler then has them so too. To be measured; see docs/cupti.md."},
    {"RANKTAP_WHOLE_GRAPHS", EnvKind::kFlag, "0", 0, 0,
     "1 records launches of CUDA graphs as a whole at level kernels also where the program may use CUPTI itself: cheaper, and torch.profiler then sees no kernel of a graph. See docs/cupti.md."},
    {"RANKTAP_SHARE_CUPTI", EnvKind::kFlag, "0", 0, 0,
     "1 records beside a profiler of the program that uses CUPTI's second API and lets others subscribe (PyTorch 2.15's second one), from CUPTI 13.3 on. To be measured; see docs/cupti.md."},
    {"RANKTAP_STACKS", EnvKind::kStacks, "auto", 0, 0,
     "Native stacks at launches (launch), synchronisations too (sync), allocations and copies too (all); off; auto is all at level full. With all itself, Python stacks of PyTorch's operators too."},
    {"RANKTAP_STACKS_SAMPLE", EnvKind::kNumber, "1", 1, 1000000,
     "One of so many calls that would have a stack gets it."},
    {"RANKTAP_SAMPLE_US", EnvKind::kNumber, "0", 0, 10000000,
     "How often a thread of the agent's looks where all Python threads are, us; 0: never. What run --sample sets."},
    {"RANKTAP_RUN_PID", EnvKind::kNumber, "0", 0, 4194304,
     "The ranktap run whose own child is sampled even where it uses no CUDA, NVTX or PyTorch; run sets it."},
    {"RANKTAP_BUDGET_PPM", EnvKind::kNumber, "0", 0, 1000000,
     "Most of the wall time that hooks may take, in millionths; past it, for 3 s, one level is given up. 0: no limit."},
    {"RANKTAP_REDACT", EnvKind::kFlag, "1", 0, 0,
     "0 keeps secrets of the command line in the run's own files; what is shown or exported never has them (docs/security.md)."},
    {"RANKTAP_PYTHON", EnvKind::kFlag, "0", 0, 0,
     "1 installs the hook for PyTorch before the interpreter starts; what run --level full sets."},
    {"RANKTAP_SCHEDULE", EnvKind::kText, "", 0, 0,
     "Which steps are recorded operator by operator, as run --schedule writes it."},
    {"RANKTAP_FLOP_CHECK", EnvKind::kFlag, "0", 0, 0,
     "1 runs PyTorch's FlopCounterMode in one recorded step, beside the operators; what run --flop-check sets."},
    {"RANKTAP_TENSORS", EnvKind::kTensors, "0", 0, 0,
     "1 records what operators return and which tensors they share, level full; what run --tensors sets. full or 2, what run --tensors=full sets: every value of an operator too, as an execution trace has it."},
});
// clang-format on

// Variables of our scripts and of the stand-in: not the agent's, and no typo either.
constexpr bool IsToolVariable(std::string_view name) {
  return name.starts_with("RANKTAP_STANDIN_") || name == "RANKTAP_BUILD" ||
         name == "RANKTAP_CACHE" || name == "RANKTAP_CUDA_HOME";
}

}  // namespace ranktap::proto

// Other tools: in the environment, in processes.
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <sstream>

#include "collector/doctor/finding.h"

namespace ranktap::collector {
namespace {

constexpr size_t kMostNamed = 5;

struct Tool {
  std::string_view mark;  // in the path of a library it maps
  std::string_view name;
};
constexpr std::array<Tool, 7> kTools = {{{"libToolsInjection", "Nsight Systems"},
                                         {"libcuda-injection", "Nsight Compute"},
                                         {"libnvbit", "an NVBit tool"},
                                         {"libparcagpu", "parcagpu"},
                                         {"libxpu_timer", "xpu_timer"},
                                         {"librocprof", "rocprof"},
                                         {"libcupti.so", "a CUPTI client"}}};

bool IsNumber(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
}

// The tool that a process's memory map shows; empty: none, or ranktap itself.
std::string_view ToolIn(const std::string& maps) {
  if (maps.find("libranktap.so") != std::string::npos) return {};
  for (const Tool& tool : kTools) {
    if (maps.find(tool.mark) != std::string::npos) return tool.name;
  }
  return {};
}

Finding Foreign(const std::string& name, const std::string& value, const std::string& effect) {
  return {Severity::kProblem, fmt::format("{} is {}, another tool's: {}", name, value, effect),
          fmt::format("unset {} for runs with ranktap", name)};
}

}  // namespace

std::vector<Finding> CheckVariables(const HostView& host) {
  std::vector<Finding> findings;
  const auto is_ours = [&](const std::string& value) {
    return value == host.agent_library || value.ends_with("/libranktap.so");
  };
  if (const auto value = host.Variable("CUDA_INJECTION64_PATH"); value && !is_ours(*value)) {
    findings.push_back(Foreign("CUDA_INJECTION64_PATH", *value,
                               "the CUDA driver loads that one only, and ranktap sees no kernels"));
  }
  if (const auto value = host.Variable("NVTX_INJECTION64_PATH"); value && !is_ours(*value)) {
    findings.push_back(Foreign("NVTX_INJECTION64_PATH", *value, "NVTX ranges go to that one only"));
  }
  if (host.Variable("RANKTAP_DISABLE").value_or("0") == "1") {
    findings.push_back({Severity::kProblem,
                        "RANKTAP_DISABLE=1 keeps the agent out of every process",
                        "unset RANKTAP_DISABLE"});
  }
  if (const auto value = host.Variable("LD_PRELOAD");
      value && value->find("libranktap.so") == std::string::npos) {
    findings.push_back({Severity::kNote,
                        fmt::format("LD_PRELOAD is {}; ranktap adds itself after it", *value), ""});
  }
  if (host.Variable("KINETO_USE_DAEMON")) {
    findings.push_back({Severity::kNote,
                        "KINETO_USE_DAEMON is set: when dynolog asks torch.profiler for a trace, "
                        "ranktap gives way and records a gap",
                        ""});
  }
  if (findings.empty()) findings.push_back({Severity::kOk, "no other tool is named", ""});
  return findings;
}

std::vector<Finding> CheckHolders(const HostView& host) {
  std::vector<Finding> findings;
  size_t unreadable = 0, others = 0;
  for (const std::string& pid : host.List("/proc")) {
    if (!IsNumber(pid)) continue;
    const auto maps = host.Read(fmt::format("/proc/{}/maps", pid));
    if (!maps) ++unreadable;
    const std::string_view tool = ToolIn(maps.value_or(""));
    std::string command = host.Read(fmt::format("/proc/{}/comm", pid)).value_or("");
    command = command.substr(0, command.find('\n'));
    if (command == "nv-hostengine") {
      findings.push_back({Severity::kNote,
                          fmt::format("DCGM (nv-hostengine, pid {}) runs: its profiling metrics "
                                      "and hardware counters of others exclude each other",
                                      pid),
                          "dcgmi profile --pause before taking counters"});
    }
    if (tool.empty()) continue;
    if (++others > kMostNamed) continue;
    findings.push_back(
        {Severity::kNote,
         fmt::format("pid {} ({}) has {} loaded; in that process ranktap would have to give way",
                     pid, command, tool),
         "end that tool's session to trace that process"});
  }
  if (others > kMostNamed) {
    findings.push_back({Severity::kNote,
                        fmt::format("{} more processes have one loaded", others - kMostNamed), ""});
  }
  if (findings.empty()) {
    std::string what = "no other holder of CUPTI among the processes that can be seen";
    if (unreadable > 0) what += fmt::format(" ({} cannot)", unreadable);
    findings.push_back({Severity::kOk, std::move(what), ""});
  }
  return findings;
}

}  // namespace ranktap::collector

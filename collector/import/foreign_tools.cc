#include "collector/import/foreign_tools.h"

#include <fmt/core.h>

#include <algorithm>

namespace ranktap::collector {
namespace {

constexpr ForeignTool kXla = {
    "XLA's profiler (JAX, TensorFlow, PyTorch/XLA)",
    "TensorBoard's profile plugin and xprof read it; of PyTorch on a GPU, torch.profiler's "
    "export_chrome_trace writes a file that ranktap reads"};
constexpr ForeignTool kRocprof = {
    "AMD's rocprof",
    "record a PyTorch program with torch.profiler, which has the same HIP calls and kernels, and "
    "name the file of its export_chrome_trace"};
constexpr ForeignTool kAscend = {"Ascend's profiler (torch_npu, msprof)",
                                 "MindStudio Insight reads it; ranktap knows no NPU's records"};
constexpr ForeignTool kLegacy = {
    "PyTorch's profiler before Kineto (torch.autograd.profiler with use_kineto=False)",
    "record with torch.profiler.profile, or with ranktap run"};
constexpr ForeignTool kVizTracer = {
    "VizTracer",
    "it has functions of Python alone; ranktap run or torch.profiler record the training"};

struct OfProcess {
  std::string_view part;
  const ForeignTool* tool;
};
constexpr OfProcess kProcesses[] = {
    {"CPU functions", &kLegacy}, {"CUDA functions", &kLegacy},  {"/device:", &kXla},
    {"/host:CPU", &kXla},        {"Ascend Hardware", &kAscend}, {"CANN", &kAscend},
    {"AscendCL", &kAscend},      {"CPU HIP API", &kRocprof},    {"CPU HSA API", &kRocprof},
};

constexpr size_t kPlaneBytes = 24;

bool HasPart(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

const ForeignTool* ForeignToolOfFile(std::string_view head, std::string_view path) {
  if (path.ends_with(".xplane.pb")) return &kXla;
  // A message XSpace begins with its first plane, and that with its number and its name.
  const std::string_view first = head.substr(0, kPlaneBytes);
  if (!head.starts_with('{') && !head.starts_with('[') &&
      (HasPart(first, "/host:") || HasPart(first, "/device:"))) {
    return &kXla;
  }
  if (HasPart(head, "\"rocprofiler-sdk-tool\"")) return &kRocprof;
  return HasPart(head, "\"viztracer_metadata\"") ? &kVizTracer : nullptr;
}

const ForeignTool* ForeignToolOfProcess(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      kProcesses, [name](const OfProcess& known) { return HasPart(name, known.part); });
  return found == std::end(kProcesses) ? nullptr : found->tool;
}

std::string WhyNotRead(const ForeignTool& tool) {
  return fmt::format("is of {}, which ranktap does not read: {}", tool.name, tool.instead);
}

}  // namespace ranktap::collector

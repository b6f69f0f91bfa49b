// A person may ask this of a report beyond its name. A report's row in registry.cc says which of
// these it heeds; the command line refuses the others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ranktap::collector {

// How kernels are named, and so which share a row.
enum class KernelNames : uint8_t {
  kDemangled,  // "void at::vectorized<4, float>(int)"
  kBase,       // "vectorized": without namespaces, template arguments and parameters
  kMangled,    // as recorded: "_ZN2at10vectorizedILi4EfEEvi"
};
inline std::optional<KernelNames> KernelNamesNamed(std::string_view name) {
  if (name == "demangled") return KernelNames::kDemangled;
  if (name == "base") return KernelNames::kBase;
  if (name == "mangled") return KernelNames::kMangled;
  return std::nullopt;
}

struct ReportOptions {
  // Answer as Holistic Trace Analysis does, with its selection and its definitions.
  bool hta_compat = false;
  // The arguments of torch's key_averages() and table().
  bool by_shape = false;
  int by_stack = 0;  // frames
  bool by_module = false;
  bool top_level = false;  // as table()'s top_level_events_only
  KernelNames kernel_names = KernelNames::kDemangled;
  bool by_grid = false;  // by the launch's grid and block, too
  // Operators whose name contains this; device operations in a sequence at least.
  std::string operator_name;
  int shortest_pattern = 3;
  // After every so many operators; 0: at moments of equal distance.
  int sample_rate = 0;
  std::string by;  // what shares a row: one of WaysOf(report)
  // For a roofline: parts of a module's name below the root (negative: all), the device by its
  // name, and what its memory gives. Empty and 0: not given.
  int depth = -1;
  std::string device;
  double peak_bandwidth = 0;  // B/s
  // Facts about a model that a trace does not have. 0: not given.
  double peak_flops = 0;      // FLOP/s of one rank
  int64_t batch_size = 0;     // samples in a micro-batch of one rank
  int64_t data_parallel = 0;  // ranks that train on different data
};

// Bits of Report::heeds.
inline constexpr uint32_t kNothing = 0;
inline constexpr uint32_t kHtaCompat = 1;
inline constexpr uint32_t kByShape = 2;
inline constexpr uint32_t kByStack = 4;
inline constexpr uint32_t kByModule = 8;
inline constexpr uint32_t kOperator = 16;
inline constexpr uint32_t kMinLength = 32;
inline constexpr uint32_t kSampleRate = 64;
inline constexpr uint32_t kModelFacts = 128;
inline constexpr uint32_t kTopLevel = 256;
inline constexpr uint32_t kBy = 512;
inline constexpr uint32_t kByGrid = 1024;
inline constexpr uint32_t kKernelNames = 2048;
inline constexpr uint32_t kRoofs = 4096;
inline constexpr uint32_t kPeakFlops = 8192;

struct ReportOption {
  uint32_t bit;
  std::string_view name;  // as a person types it
  bool (*given)(const ReportOptions& options);
};

inline constexpr ReportOption kReportOptions[] = {
    {kHtaCompat, "--hta-compat", [](const ReportOptions& options) { return options.hta_compat; }},
    {kByShape, "--group-by-shape", [](const ReportOptions& options) { return options.by_shape; }},
    {kByStack, "--group-by-stack",
     [](const ReportOptions& options) { return options.by_stack != 0; }},
    {kByModule, "--group-by-module",
     [](const ReportOptions& options) { return options.by_module; }},
    {kTopLevel, "--top-level", [](const ReportOptions& options) { return options.top_level; }},
    {kByGrid, "--group-by-grid", [](const ReportOptions& options) { return options.by_grid; }},
    {kKernelNames, "--kernel-names",
     [](const ReportOptions& options) {
       return options.kernel_names != ReportOptions().kernel_names;
     }},
    {kOperator, "--operator",
     [](const ReportOptions& options) { return !options.operator_name.empty(); }},
    {kMinLength, "--min-length",
     [](const ReportOptions& options) {
       return options.shortest_pattern != ReportOptions().shortest_pattern;
     }},
    {kSampleRate, "--sample-rate",
     [](const ReportOptions& options) { return options.sample_rate != 0; }},
    {kBy, "--by", [](const ReportOptions& options) { return !options.by.empty(); }},
    {kRoofs, "--depth", [](const ReportOptions& options) { return options.depth >= 0; }},
    {kRoofs, "--device", [](const ReportOptions& options) { return !options.device.empty(); }},
    {kRoofs, "--peak-bandwidth",
     [](const ReportOptions& options) { return options.peak_bandwidth != 0; }},
    {kPeakFlops, "--peak-flops",
     [](const ReportOptions& options) { return options.peak_flops != 0; }},
    {kModelFacts, "--batch-size",
     [](const ReportOptions& options) { return options.batch_size != 0; }},
    {kModelFacts, "--data-parallel-size",
     [](const ReportOptions& options) { return options.data_parallel != 0; }},
};

}  // namespace ranktap::collector

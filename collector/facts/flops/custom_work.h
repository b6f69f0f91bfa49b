// Work that PyTorch's formulas do not know: kernels that a compiler made, operators of other
// libraries, autograd functions; how long it took, and its arithmetic where somebody knows it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

enum class CustomKind : uint8_t {
  kGeneratedKernel,   // Inductor's, by its own name
  kCompiledGraph,     // a graph of Inductor's whose kernels have no record of their own
  kOperator,          // of another library, or PyTorch's that no formula can count
  kAutogradFunction,  // a torch.autograd.Function, forward or backward
  kOwnKernel,         // that the program launched by the driver's API outside any operator
};

struct CustomWork {
  std::string_view name;
  CustomKind kind{};
  bool is_said = false;  // by --flops-of
  int64_t calls = 0;
  int64_t time_ns = 0;  // on the device, or where there is none on the host, without what it calls
  // FlopRule::kCounter, of all calls; nullopt: of some call nobody knows it.
  std::optional<int64_t> flops = 0;
  std::optional<int64_t> operations = 0;  // KnownFlops::Operations
  std::set<std::string, std::less<>> operators, lines, modules;
};

struct CustomWorks {
  std::vector<CustomWork> rows;  // the longest first
  bool on_device = false;
  int64_t time_ns = 0;     // of all operators, or of all kernels that compute
  int64_t unknown_ns = 0;  // of rows whose FLOPs are not known
};

// Worked out once and kept in the trace's memo.
const CustomWorks& FindCustomWork(const Trace& trace);

}  // namespace ranktap::collector

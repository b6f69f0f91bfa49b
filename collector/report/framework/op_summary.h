// torch.profiler's key_averages() over a trace's operators: the same events, nesting, sums and
// keys as torch/autograd/profiler_util.py (2.x), in nanoseconds.
#pragma once

#include <string>
#include <vector>

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct OpRow {
  std::string name;  // ProfilerStep#7 as ProfilerStep*
  bool on_device = false;
  bool is_annotation = false;
  bool is_inside = false;          // another operator called it, the first time
  std::string shapes;              // JSON; only when grouped by shape
  std::vector<std::string> stack;  // only when grouped by stack
  std::string module;              // Root.path; only when grouped by module, as the pass
  std::string pass;                // forward, backward or recompute
  int64_t count = 0;
  int64_t self_cpu_ns = 0, cpu_ns = 0, self_device_ns = 0, device_ns = 0;
  int64_t cpu_bytes = 0, self_cpu_bytes = 0, device_bytes = 0, self_device_bytes = 0;
  int64_t flops = 0;          // FlopRule::kProfiler
  int64_t counted_flops = 0;  // FlopRule::kCounter; those of an operator are not in its caller's
};

// In the order in which a trace first shows them. self CPU: without what runs inside; device of an
// operator: the work that names it as its cause, and that of all inside. A child with its parent's
// name that is its only one counts as one with it.
std::vector<OpRow> AverageOps(const Trace& trace, const ReportOptions& options);

}  // namespace ranktap::collector

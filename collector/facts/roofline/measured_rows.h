// Hardware counters added up by what is asked, beside what the operators' shapes say of the same
// work. Reports tabulate them and plots draw them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/roofline/measured_work.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

struct MeasuredRow {
  const Trace* trace = nullptr;
  std::string name;                          // of the kernel; by operator or module of that
  std::string innermost, outermost, module;  // of the first launch
  int64_t launches = 0;
  MeasuredWork work;
  std::optional<int64_t> flops, moved;  // of the operators' shapes, where all kernels are measured

  // Tensor cores worked, and nobody counted what: FLOPs() lacks that.
  bool lacks_tensor_flops() const {
    return work.tensor_instructions.sum().value_or(0) > 0 && !work.tensor_flops.sum();
  }
  // Measured; of the shapes where tensor cores' were not counted.
  std::optional<double> Flops() const;
  // Of this run's kernels where they were joined to it, else under the profiler.
  std::optional<double> TimeNs() const;
};

struct MeasuredRows {
  std::vector<MeasuredRow> rows;  // the most FLOPs first; launches in their order
  struct Unjoined {
    const Trace* trace = nullptr;
    size_t kernels = 0, launches = 0;
  };
  std::vector<Unjoined> unjoined;           // nobody knows which launches theirs are
  std::vector<std::string> contradictions;  // sentences: where counters and shapes differ
};

// `by`: "kernel", "operator", "module" or "launch".
MeasuredRows SummarizeMeasured(const Run& run, std::string_view by);

}  // namespace ranktap::collector

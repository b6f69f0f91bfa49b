#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "collector/facts/numbers/duration_statistics.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

// One CUDA function called from one place of the program.
struct CallSite {
  SourceFrame frame;   // the innermost one that is the program's
  std::string module;  // file name of the shared object or executable
  std::string api;
  DurationStatistics host;  // time in the call
  int64_t gpu_ns = 0;       // of the kernels, copies and graphs launched, or captured, there
  int64_t ranks = 0;
};

// Whether a frame belongs to CUDA and not to the program: the driver, the runtime, CUPTI, and the
// stubs that nvcc puts between a <<<>>> and the runtime.
bool IsCudaFrame(const SourceFrame& frame, std::string_view module);

// The innermost frame of a stack that is the program's; without one, the innermost of all.
SourceFrame FrameOfStack(const Trace& trace, uint32_t stack);

// "file.cc:12", or nothing.
std::string SourceText(const SourceFrame& frame);

// "Trainer::Step at train.cu:155", by FrameOfStack; the function alone where no line is known, and
// empty where no symbol is.
std::string NativeLineOf(const Trace& trace, uint32_t stack);

// Where in the program do CUDA calls come from? Calls that carry a stack, of all ranks; most GPU
// time first, then most host time. Needs Trace::symbols.
std::vector<CallSite> FindCallSites(const std::vector<Trace>& traces);

}  // namespace ranktap::collector

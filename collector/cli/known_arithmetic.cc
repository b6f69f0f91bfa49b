#include "collector/cli/known_arithmetic.h"

#include <fmt/core.h>

#include <iterator>
#include <memory>
#include <utility>

#include "collector/facts/flops/flop_expression.h"
#include "collector/file/printable.h"
#include "collector/import/inductor/generated_kernels.h"
#include "collector/terminal/complain.h"

namespace ranktap::collector {

void AddKnownArithmeticOptions(Arguments* app, KnownArithmeticOptions* options) {
  app->Add("--flops-of", &options->flops_of,
           "NAME=EXPRESSION: the FLOPs of one call of an operator that no formula knows, as "
           "mylib::attend='4*numel(in0)*in1[2]'; may be repeated")
      .Repeatable();
  app->Add("--compiled", &options->compiled,
           "a folder that torch.compile wrote (TORCH_TRACE, TORCH_COMPILE_DEBUG, "
           "TORCHINDUCTOR_CACHE_DIR): which operators its kernels fuse; may be repeated")
      .Repeatable();
}

bool TakeKnownArithmetic(const KnownArithmeticOptions& options, const Run& run) {
  if (options.flops_of.empty() && options.compiled.empty()) return true;
  auto known = std::make_shared<KnownArithmetic>();
  for (const std::string& said : options.flops_of) {
    const size_t equals = said.find('=');
    if (equals == std::string::npos || equals == 0) {
      Complain(fmt::format("--flops-of '{}' is not NAME=EXPRESSION", Printable(said)));
      return false;
    }
    known->said.push_back({said.substr(0, equals), said.substr(equals + 1)});
    if (const auto wrong = WhatIsWrong(known->said.back().expression)) {
      Complain("--flops-of: " + Printable(*wrong));
      return false;
    }
  }
  for (const std::string& folder : options.compiled) {
    Result<std::vector<GeneratedKernel>> kernels = ReadGeneratedKernels(folder);
    if (!kernels || kernels->empty()) {
      Complain(kernels ? fmt::format("--compiled {}: it says nothing of a kernel", folder)
                       : "--compiled " + kernels.message());
      return false;
    }
    std::move(kernels->begin(), kernels->end(), std::back_inserter(known->generated));
  }
  for (const Trace& trace : run.traces) Know(known, trace);
  return true;
}

}  // namespace ranktap::collector

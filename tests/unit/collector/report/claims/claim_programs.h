// Programs of one rank on which claims rest: what the tests of checks and of mutations change is
// one fact of them.
#pragma once

#include <cstdint>
#include <string_view>

#include "collector/trace/operator_join.h"
#include "tests/unit/collector/report/insights/insight_program.h"

namespace ranktap::collector {

// Ten steps of 10 ms: a kernel launched `after` into each runs from 6 ms to its end.
inline InsightProgram AKernelLaunched(int64_t after) {
  InsightProgram program;
  for (int64_t at = 0; at < 100 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddKernel({.launched = at + after, .start = at + 6 * kMs, .end = at + 10 * kMs});
  }
  return program;
}

// Ten steps of 10 ms on an H100, in each a product of 5 ms; the first `recorded` of them with
// shapes.
inline InsightProgram AProduct(std::string_view shapes, size_t recorded = 10) {
  InsightProgram program;
  v1::Device* const device = program->trace().hello.add_devices();
  device->set_id(0);
  device->set_name("NVIDIA H100 80GB HBM3");
  for (int64_t at = 0; at < 100 * kMs; at += 10 * kMs) {
    program->AddStep(at, at + 10 * kMs);
    program->AddOperator("aten::mm", at, at + 3 * kUs);
    program->AddKernel({.name = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64",
                        .launched = at + kUs,
                        .start = at + 4 * kUs,
                        .end = at + 5 * kMs});
  }
  Trace& trace = program->trace();
  const uint32_t text = trace.dictionary.AppendString(shapes);
  const uint32_t types = trace.dictionary.AppendString(R"(["c10::BFloat16", "c10::BFloat16"])");
  for (size_t op = 0; op < trace.operators.size(); ++op) {
    trace.operators.shapes.push_back(op < recorded ? text : 0);
    trace.operators.types.push_back(types);
  }
  JoinOperators(&trace);
  return program;
}

}  // namespace ranktap::collector

// What is known of operators' arithmetic beside the formulas: what a person says of one, and what
// the source of a generated kernel fuses.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collector/trace/model.h"

namespace ranktap::collector {

// `--flops-of NAME=EXPRESSION`
struct SaidFlops {
  std::string name;        // of the operator, exactly
  std::string expression;  // facts/flops/flop_expression.h
};

// An operator of the graph that a compiler fused into a kernel. Texts as those of Operators, but
// that sizes may be symbols.
struct FusedOperator {
  std::string name;            // "aten::addmm"
  std::string shapes, values;  // of the inputs; empty: the file does not say
  std::string output;          // shape of the output, "[32, 128]"; empty: unknown
  std::string line;            // "net.py(9): forward"; empty: unknown
};

struct GeneratedKernel {
  std::string name;  // as it runs: "triton_poi_fused_add_0", "cpp_fused_gelu_0"
  std::string file;  // that says so
  std::vector<FusedOperator> operators;
  // Shapes of what it is called with, "[[s0, 64], [64], []]": with those of a recorded call they
  // say what the symbols are. Empty: the file does not say.
  std::string arguments = {};
};

struct KnownArithmetic {
  std::vector<SaidFlops> said;
  std::vector<GeneratedKernel> generated;
};

// Kept in the trace's memo, for its life: whoever filters a trace resets that, and says it again.
// Before anything counts; a second time changes nothing.
inline void Know(std::shared_ptr<const KnownArithmetic> known, const Trace& trace) {
  trace.memo.Get<std::shared_ptr<const KnownArithmetic>>([&known] { return std::move(known); });
}
// nullptr: nothing beside the formulas.
inline const KnownArithmetic* KnownOf(const Trace& trace) {
  using Kept = std::shared_ptr<const KnownArithmetic>;
  return trace.memo.Get<Kept>([] { return Kept(); }).get();
}

}  // namespace ranktap::collector

// PyTorch's operators, from a callback of ours at at::RecordFunction: a range for each, in the
// domain we are given, with the number of a signature (shapes, types and values of the inputs) that
// is told once in words (proto::kDescribedOperatorPayload).
// Runs on: threads that hold the interpreter's lock; the callbacks on threads that run operators.
// May not: in a callback allocate (but at a signature's first time), lock, wait, call Python.
#pragma once

#include <cstdint>

#include "agent/sources/torch/torch_layout.h"
#include "proto/events.h"
#include "proto/operator_values.h"

namespace ranktap::agent {

// Begins a search for PyTorch's offsets: the caller now runs the operators that LayoutProbe names,
// with these tensors. False: this PyTorch does not offer what is needed.
[[nodiscard]] bool BeginOperatorProbe(std::span<const uint64_t> tensors);
// Before the end: of tensors that the operators left. Without it their outputs are not found.
// The numbers are those of a ProbedTensors.
bool ProbeTensors(std::span<const uint64_t> made);
// The same for what --tensors=full needs: views at offsets 37 and 61, sizes 7, 2, 3 with strides 1,
// 21, 7, and a tensor on "meta" (ValueProbe).
bool ProbeValueTensors(std::span<const uint64_t> tensors);
// Ends it. True: operators can be observed from now on.
[[nodiscard]] bool EndOperatorProbe(std::span<const uint64_t> sequences);

// From now on the operators of this thread, and of the autograd threads that work for it, are
// recorded. Signatures are marks called `signatures` in `domain`. True: with what was asked for of
// their tensors.
bool StartOperators(proto::ArenaRef domain, proto::ArenaRef signatures, proto::TensorDetail detail);
// No longer; on another thread than the one that started it they go on.
void StopOperators();
// Any thread: labels of record_function are among the operators that are recorded on it.
bool RecordsLabelsOfThread();

}  // namespace ranktap::agent

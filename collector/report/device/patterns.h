// Which sequences of kernels come again and again?
//
// Rows of kind "stream": stretches of one stream's work (kernels, copies, memsets, by start) that
// repeat, found by repeated_sequences.h over all streams and ranks. `pattern` writes what repeats
// inside as (a | b) x12.
//
// Rows of kind "operator": operators and annotations of one name whose launches, those of the
// operators inside them included, put the same sequence on the devices (by start). It is what HTA's
// get_frequent_cuda_kernel_sequences counts, for all operators at once; where an operator holds
// nothing but another with the same launches, the outer one has the row. A sequence is told by its
// length and a hash of 61 bits. O(n log n) for n launches, times the depth of the operators where
// their work began in another order than it was launched in.
//
// `pattern` has names without namespaces, template arguments and parameters, `kernels` all of them.
// count: occurrences without overlap. gpu_ns: their device work. cpu_ns: of the operators. span_ns:
// from an occurrence's first start to its last end, so that span_ns - gpu_ns was idle in between
// on one stream. Named by --operator: the shallowest operators whose name contains it, as HTA; else
// what comes twice or more, the first kMostPatterns of each kind. A depth counts operators
// and Python calls of the thread; the thread of the backward pass hangs below the steps, as in HTA.
#pragma once

#include "collector/report/options.h"
#include "collector/report/table.h"
#include "collector/trace/run.h"

namespace ranktap::collector {

inline constexpr size_t kMostPatterns = 64;

}  // namespace ranktap::collector

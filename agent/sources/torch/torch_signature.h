// The inputs of an operator as a number: equal shapes, types and values have the same. Each is told
// in words when it is new, as a mark of JSON that torch.profiler's reader would understand:
// [number, "[[8, 16], []]", "[\"float\", \"Scalar\"]", "[...]"] (shapes, types, values).
// Runs on: threads that run operators.  May not: allocate but when a signature is new.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "agent/core/writer.h"
#include "agent/sources/torch/torch_values.h"

namespace ranktap::agent {

// A name as events have it: interned, or as text where there is no room.
struct EventNameRef {
  proto::ArenaRef ref = 0;
  std::string_view text;
};

// 0: there are no inputs, or more signatures than a window has room for. Values count only where a
// formula of FLOPs looks at them, which the operator's name says.
uint64_t SignatureOf(ThreadState& thread, const TorchInputs& inputs, const char* name,
                     proto::ArenaRef domain, proto::ArenaRef mark);

// A sentence on the operators since the last call that have no shapes; empty: all have. While no
// operator is observed.
std::string TakeWhatIsNotDescribed();

// All are new again: a collector that came later has not heard the old ones. While no operator is
// observed.
void ForgetSignatures();

}  // namespace ranktap::agent

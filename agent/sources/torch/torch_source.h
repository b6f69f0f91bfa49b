// PyTorch, seen from its own Python: steps, modules, phases, operators (the folder's outward
// header, beside python_injection.h). kCaptureFramework alone decides what is recorded.
#pragma once

#include "proto/modes.h"

namespace ranktap::agent {

// As in Source (agent/sources/source.h).
void SetTorchLevel(proto::Level level, proto::GapReason reason);

}  // namespace ranktap::agent

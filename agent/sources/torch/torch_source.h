// PyTorch, seen from its own Python: steps, modules, phases, operators (the folder's outward
// header, beside python_door.h). What is recorded is decided by kCaptureFramework alone.
#pragma once

#include "agent/sources/source.h"

namespace ranktap::agent {

Source& TorchSource();

}  // namespace ranktap::agent

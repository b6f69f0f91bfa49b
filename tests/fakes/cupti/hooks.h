// What the machine calls in libcupti.
#pragma once

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

const ToolHooks* MachineHooks();

}  // namespace ranktap::standin

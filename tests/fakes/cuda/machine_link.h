// The machine as libcudart and libcupti see it, and what a test may change while it runs.
#pragma once

#include "tests/fakes/tool_link.h"

namespace ranktap::standin {

const MachineLink* TheMachineLink();
CUresult InitializeMachine();

// The exported data symbol `ranktap_standin_marker`: that it exists says "this is no GPU".
struct Marker {
  uint32_t version;
  void (*change_setting)(const char* name, const char* value);
};

}  // namespace ranktap::standin

// Kernels' times by the hardware event system of Blackwell GPUs instead of CUPTI's own commands:
// asked for once a process, where somebody wants it (RANKTAP_HARDWARE_EVENTS) and it may be.
// Runs on: Ask and Tell on the thread that arms.  May not: ask while a kind is on, or twice.
#pragma once

#include <cstdint>
#include <string>

#include "agent/sources/cupti/cupti_api.h"

namespace ranktap::agent::cupti {

class HardwareEvents {
 public:
  // Before the first kind; what comes of it is noted. `late`: there may be CUDA contexts.
  void Ask(const LoadedApi& loaded, bool late);
  // CUPTI has told of an error that it goes on after (kStateError); kSuccess: of none.
  void Tell(Result error);

 private:
  bool is_asked_ = false, is_on_ = false;
};

// Pure; why CUPTI must not be asked, as far as the version and the process's surroundings tell.
// Empty: nothing is against it.
struct HardwareEventsPlace {
  uint32_t version = 0;
  bool late = false, under_mps = false, under_wsl = false, on_mig = false;
};
std::string WhyNoHardwareEvents(const HardwareEventsPlace& place);

}  // namespace ranktap::agent::cupti

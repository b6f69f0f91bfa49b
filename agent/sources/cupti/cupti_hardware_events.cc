// Asking for the hardware event system, and the reasons against it.
// Runs on: see cupti_hardware_events.h.  May not: ask while a kind is on, or twice.
#include "agent/sources/cupti/cupti_hardware_events.h"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "agent/core/agent_state.h"
#include "agent/core/announcements.h"
#include "agent/sources/cupti/cupti_features.h"

namespace ranktap::agent::cupti {
namespace {

HardwareEventsPlace PlaceOf(uint32_t version, bool late) {
  const char* const devices = std::getenv("CUDA_VISIBLE_DEVICES");
  return {.version = version,
          .late = late,
          .under_mps = std::getenv("CUDA_MPS_PIPE_DIRECTORY") != nullptr ||
                       access("/tmp/nvidia-mps/control", F_OK) == 0,
          .under_wsl = access("/dev/dxg", F_OK) == 0,
          .on_mig = devices != nullptr && std::string_view(devices).starts_with("MIG-")};
}

std::string ReasonOf(Result error) {
  switch (error) {
    case kErrorNotSupported:
      return "CUPTI says that this device has none (Blackwell and later have)";
    case kErrorVirtualizedDevice:
      return "CUPTI does not do so on a virtual device";
    case kErrorConfidentialComputing:
      return "CUPTI does not do so under confidential computing";
    case kErrorMigDevice:
      return "CUPTI does not do so on a MIG device";
    case kErrorWslDevice:
      return "CUPTI does not do so under WSL";
    case kErrorHardwareEventsUnderMps:
      return "CUPTI does not do so under MPS";
    default:
      return "CUPTI answers error " + std::to_string(error);
  }
}

void NoteNone(const std::string& why) {
  LogAndAnnounce("no hardware event system: " + why + "; kernels are timed as usual");
}

}  // namespace

std::string WhyNoHardwareEvents(const HardwareEventsPlace& place) {
  if (!FeaturesOf(place.version).may_use_hardware_events) {
    return "CUPTI before 13.4 U1 corrupts the heap with it";
  }
  if (place.late) return "CUDA was up before kernels were recorded";
  if (place.under_mps) return ReasonOf(kErrorHardwareEventsUnderMps);
  if (place.under_wsl) return ReasonOf(kErrorWslDevice);
  return place.on_mig ? ReasonOf(kErrorMigDevice) : "";
}

void HardwareEvents::Ask(const LoadedApi& loaded, bool late) {
  if (is_asked_ || !Config().hardware_events) return;
  is_asked_ = true;
  const std::string why = WhyNoHardwareEvents(PlaceOf(loaded.version, late));
  if (!why.empty()) return NoteNone(why);
  if (loaded.api.ActivityEnableHWTrace == nullptr)
    return NoteNone("this CUPTI has no function for it");
  const Result result = loaded.api.ActivityEnableHWTrace(1);
  if (result != kSuccess) return NoteNone(ReasonOf(result));
  is_on_ = true;
  LogAndAnnounce("kernels are timed by the hardware event system, as RANKTAP_HARDWARE_EVENTS asks");
}

void HardwareEvents::Tell(Result error) {
  if (error == kSuccess || !is_on_) return;
  is_on_ = false;
  NoteNone(ReasonOf(error));
}

}  // namespace ranktap::agent::cupti
